"""A stretch of a run, and the one that counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stallscope.profiler.capture import Capture, Request

INSTANT_NS = 1  # the length that gauges of one moment are given, to be weighed at all


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the run on the capture's clock."""

    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        """Its length."""
        return max(0, self.end_ns - self.start_ns)

    @property
    def is_instant(self) -> bool:
        """Whether it stands for one moment of which gauges tell."""
        return self.duration_ns == INSTANT_NS

    def overlap_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how much of [start, end) lies in the span."""
        return max(0, min(end_ns, self.end_ns) - max(start_ns, self.start_ns))


def union_ns(intervals: Iterable[tuple[int, int]]) -> int:
    """Return the length of the union of intervals."""
    total, reached = 0, None
    for start, end in sorted(intervals):
        if reached is None or start > reached:
            reached = start
        if end > reached:
            total += end - reached
            reached = end
    return total


def run_span(capture: Capture) -> Span | None:
    """Return the stretch that counts: from the first arrival or step to the last moment known.

    In a cut run that is not the end of a request: those that still wait have none.
    """
    starts = [r.arrival_ns for r in capture.requests]
    ends = [t for r in capture.requests for t in _moments(r)] + [t.t_ns for t in capture.tokens]
    steps = [s for s in capture.steps if not s.warmup]
    starts += [s.start_ns for s in steps]
    ends += [s.end_ns for s in steps]
    gauges = [s.t_ns for s in capture.engine_samples]
    if not starts and gauges:
        return Span(min(gauges), max(max(gauges), min(gauges) + INSTANT_NS))
    return Span(min(starts), max(ends)) if starts and ends else None


def _moments(request: Request) -> Iterator[int]:
    moments = (request.arrival_ns, request.admitted_ns, request.first_token_ns, request.end_ns)
    return (t for t in moments if t is not None)
