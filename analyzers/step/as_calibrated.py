"""A run's decode steps beside what the calibration of its device expects of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from stallscope.analyzers.cost.learnt_words import how_far_off, learnt_from
from stallscope.analyzers.cost.likely import likely_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.step.shape import computed_shape
from stallscope.profiler.wording import figure


def calibration_note(costs: Sequence[StepCost], cost: CostModel | None) -> tuple[str, ...]:
    """Say what a usual decode step was expected to take, where the device was calibrated."""
    fitted = cost.machine.calibration if cost is not None else None
    if cost is None or fitted is None:
        return ()
    model, overhead = likely_model(cost)
    if model is cost:
        return ()
    pairs = [
        (
            c.time_s,
            model.step_time(shape).floor
            + overhead.per_step
            + overhead.per_request * c.step.decode_requests,
        )
        for c in costs
        if c.step.phase == "decode"
        and (shape := computed_shape(c.step, cost.spec.sliding_window)) is not None
    ]
    if not pairs:
        return ()
    took, expected = (statistics.median(column) for column in zip(*pairs, strict=True))
    return (
        f"By the device's calibration of {fitted.at} ({learnt_from(fitted)}, "
        f"{how_far_off(fitted)}) a usual decode step here takes {figure(1e3 * expected)} ms; it "
        f"took {figure(1e3 * took)} ms.",
    )
