"""Steps of a trace: as the engine marked them, else as its kernels recur."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.profiler.trace.marks import StepMark
from stallscope.profiler.trace.phases import Joined, MarkedStep, join, join_by_time, marked_steps
from stallscope.profiler.trace.recurring import recurring_steps
from stallscope.profiler.trace.timeline import UNKNOWN, Trace


@dataclass(frozen=True, slots=True)
class FoundSteps:
    """Steps in order of time, and what belongs to them; `evidence` is for those without marks."""

    steps: tuple[MarkedStep, ...]
    of_kernels: Joined
    of_copies: Joined
    evidence: str | None = None


def find_steps(trace: Trace) -> FoundSteps:
    """Take the marks, or where there are none what recurs; there may be neither."""
    marked = marked_steps(trace)
    recurring = None if marked else recurring_steps(trace.kernels, trace.names)
    if recurring is None:
        return FoundSteps(marked, join(trace.kernels, marked), join(trace.copies, marked))
    mark = StepMark("other", "recurring kernels")
    spans = zip(recurring.start_ns.tolist(), recurring.end_ns.tolist(), strict=True)
    steps = tuple(MarkedStep(start_ns, end_ns, UNKNOWN, mark) for start_ns, end_ns in spans)
    return FoundSteps(
        steps,
        join_by_time(trace.kernels, steps),
        join_by_time(trace.copies, steps),
        recurring.evidence,
    )
