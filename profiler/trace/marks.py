"""What a named range says about the engine's step that it marks."""

from __future__ import annotations

from stallscope.profiler.trace.engine_marks import engine_mark
from stallscope.profiler.trace.mark import MarkedPhase, StepMark
from stallscope.profiler.trace.plain_marks import plain_mark

__all__ = ["MarkedPhase", "StepMark", "step_mark"]


def step_mark(text: str, payload: int | None) -> StepMark | None:
    """Read a range's text and its integer payload; None where it marks no step.

    Ranges that mark a part of a step are none either: step_parts.step_part reads those.
    """
    return engine_mark(text) or plain_mark(text, payload)
