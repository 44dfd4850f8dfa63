"""What to expect of a step: as calibrated, else as real kernels run, else the floor."""

from __future__ import annotations

from dataclasses import replace

from stallscope.analyzers.cost.achievable import DEFAULT, Achievable
from stallscope.analyzers.cost.calibrated import calibrated_model
from stallscope.analyzers.cost.expected import expected_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.whatif.simulate import Overhead
from stallscope.profiler.spec import Calibration


def likely_model(cost: CostModel) -> tuple[CostModel, Overhead]:
    """Return what to expect where that is known, else the floor, and what the host adds."""
    measured = calibrated_model(cost)
    if measured is not None:
        return measured, Overhead()
    model = expected_model(cost, calibrated_reach(cost.machine.calibration))
    if model is None:
        return cost, Overhead()
    return model, Overhead(model.reach.step_s, model.reach.request_s)


def calibrated_reach(fitted: Calibration | None) -> Achievable:
    """Return what engines reach, with the host's part as measured where it was."""
    if fitted is None or fitted.step_s is None or fitted.request_s is None:
        return DEFAULT
    return replace(DEFAULT, step_s=fitted.step_s, request_s=fitted.request_s)
