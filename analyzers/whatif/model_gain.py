"""What more running requests would bring at the most, by the cost model and one measured step."""

from __future__ import annotations

import dataclasses

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.load.sampled_work import SampledStep, as_step, sampled_step
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.step.shape import computed_shape
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture


def most_by_model(
    capture: Capture, cost: CostModel | None, span: Span, growth: float, t: Thresholds
) -> tuple[float, float] | None:
    """Return tokens per second as sampled, and the most that they may rise by.

    With `growth` times as many running, the mean step holds as much more of everything. Its floor
    grows by what the model says, and what it takes beyond the floor does not shrink: so it takes
    the measured time and the growth of the floor at the least. None without a mean step, or where
    the floor lies above it.
    """
    found = sampled_step(capture, cost, span) if cost is not None else None
    if cost is None or found is None:
        return None
    now, then = _floor_s(found, cost), _floor_s(_times(found, growth), cost)
    if now > (1.0 - t.model_error) * found.seconds:
        return None
    longer = found.seconds + max(0.0, then - now)
    return found.rows / found.seconds, max(0.0, growth * found.seconds / longer - 1.0)


def _times(found: SampledStep, growth: float) -> SampledStep:
    return dataclasses.replace(
        found,
        rows=found.rows * growth,
        prompts=found.prompts * growth,
        context=found.context * growth,
    )


def _floor_s(found: SampledStep, cost: CostModel) -> float:
    shape = computed_shape(as_step(found), cost.spec.sliding_window)
    return cost.step_time(shape).floor if shape is not None else 0.0
