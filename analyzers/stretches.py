"""Stretches of one phase, and the device samples that speak of them alone."""

from __future__ import annotations

import bisect
import dataclasses
import functools
from collections.abc import Iterable, Sequence

from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import LEAST_STRETCH_NS, SAMPLE_WINDOW_NS, Capture, Step

# Between steps an engine does work that belongs to its phase; a longer pause is a stretch's end.
MOST_GAP_NS = 100_000_000


def stretches(
    steps: Iterable[Step], phase: str, *, least_ns: int = LEAST_STRETCH_NS
) -> tuple[Span, ...]:
    """Return when every rank took steps of `phase` only, for `least_ns` or more at a time.

    Which device belongs to which rank is not known, so the ranks must agree.
    """
    ranks: dict[int, list[Step]] = {}
    for step in sorted(steps, key=lambda s: s.start_ns):
        ranks.setdefault(step.rank, []).append(step)
    if not ranks:
        return ()
    agreed = functools.reduce(_common, [_of_rank(rows, phase) for rows in ranks.values()])
    return tuple(span for span in agreed if span.duration_ns >= least_ns)


def samples_in(capture: Capture, phase: str) -> Capture:
    """Leave only the device samples whose averaging window lies in one stretch of the phase."""
    spans = stretches(capture.steps, phase)
    starts = [span.start_ns for span in spans]

    def lies_within(t_ns: int) -> bool:
        index = bisect.bisect_right(starts, t_ns - SAMPLE_WINDOW_NS) - 1
        return index >= 0 and t_ns <= spans[index].end_ns

    inside = tuple(s for s in capture.device_samples if lies_within(s.t_ns))
    return dataclasses.replace(capture, device_samples=inside)


def _of_rank(steps: Sequence[Step], phase: str) -> tuple[Span, ...]:
    """Return one rank's stretches: steps of the phase that follow upon each other."""
    found: list[Span] = []
    is_open, other_end_ns = False, 0
    for step in steps:
        if step.phase != phase or step.warmup:
            is_open, other_end_ns = False, max(other_end_ns, step.end_ns)
            if found:
                found[-1] = Span(found[-1].start_ns, min(found[-1].end_ns, step.start_ns))
        elif is_open and step.start_ns - found[-1].end_ns <= MOST_GAP_NS:
            found[-1] = Span(found[-1].start_ns, max(found[-1].end_ns, step.end_ns))
        else:
            found.append(Span(max(step.start_ns, other_end_ns), step.end_ns))
            is_open = True
    return tuple(found)


def _common(one: Sequence[Span], other: Sequence[Span]) -> tuple[Span, ...]:
    """Return where both have a span."""
    found, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        a, b = one[i], other[j]
        both = Span(max(a.start_ns, b.start_ns), min(a.end_ns, b.end_ns))
        if both.duration_ns:
            found.append(both)
        if a.end_ns < b.end_ns:
            i += 1
        else:
            j += 1
    return tuple(found)
