"""A run's decode steps beside what the calibration of its device expects of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.learnt_words import how_far_off, learnt_from
from stallscope.analyzers.cost.likely import likely_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.cost.run_mark import run_mark
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.step.shape import computed_shape
from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import Calibration
from stallscope.profiler.wording import figure


def calibration_note(capture: Capture, costs: Sequence[StepCost]) -> tuple[str, ...]:
    """Say what a usual decode step was expected to take, where the device was calibrated.

    The device is priced as it was when it was calibrated, not by the run's own probes.
    """
    device = capture.subject.device
    fitted = None if device is None else device.calibration
    if fitted is None:
        return ()
    cost = build_cost_model(Capture(capture.subject, meta=capture.meta))
    pairs = _pairs(costs, cost) if isinstance(cost, CostModel) else ()
    if not pairs:
        return ()
    took, expected = (statistics.median(column) for column in zip(*pairs, strict=True))
    return (
        f"By the device's calibration of {fitted.at} ({learnt_from(fitted)}, "
        f"{how_far_off(fitted)}) a usual decode step here takes {figure(1e3 * expected)} ms; it "
        f"took {figure(1e3 * took)} ms.{_of_itself(capture, fitted)}",
    )


def _of_itself(capture: Capture, fitted: Calibration) -> str:
    """Say where a run is set beside what was learnt from it: it agrees with itself."""
    if run_mark(capture) not in fitted.runs:
        return ""
    return " This run is one of those that it was fitted on: that they agree says nothing."


def _pairs(costs: Sequence[StepCost], cost: CostModel) -> tuple[tuple[float, float], ...]:
    """Return the seconds of each decode step, and those expected of it."""
    model, overhead = likely_model(cost)
    if model is cost:
        return ()
    return tuple(
        (
            c.time_s,
            model.step_time(shape).floor
            + overhead.per_step
            + overhead.per_request * c.step.decode_requests,
        )
        for c in costs
        if c.step.phase == "decode"
        and (shape := computed_shape(c.step, cost.spec.sliding_window)) is not None
    )
