"""How long requests stayed and waited, in a span."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import Capture, Request, Step


def preempted_inside(request: Request, span: Span) -> int:
    """Nanoseconds that a request was put back into the queue inside the span.

    They are spread evenly over its stay after admission: rows keep their sum.
    """
    end = span.end_ns if request.end_ns is None else request.end_ns
    admitted = end if request.admitted_ns is None else request.admitted_ns
    if not request.preempted_ns or end <= admitted:
        return 0
    return round(request.preempted_ns * span.overlap_ns(admitted, end) / (end - admitted))


def stay(request: Request, span: Span) -> int:
    """Nanoseconds that a request was in the system inside the span."""
    end = span.end_ns if request.end_ns is None else request.end_ns
    return span.overlap_ns(request.arrival_ns, end)


def present(capture: Capture) -> tuple[Request, ...]:
    """Return the requests that the system took: one that was turned away never waited."""
    return tuple(r for r in capture.requests if r.status != "failed" or r.end_ns is not None)


class Waits:
    """How long requests waited, in all and beyond the step that ran when they came."""

    def __init__(self, steps: Sequence[Step]) -> None:
        knows_queue = bool(steps) and all(s.waiting is not None for s in steps)
        self._starts = sorted(s.start_ns for s in steps) if knows_queue else []
        self.tells_steps = knows_queue

    def all(self, request: Request, span: Span) -> int:
        """Return nanoseconds before admission, or preempted."""
        until = self._admitted(request, span)
        return span.overlap_ns(request.arrival_ns, until) + preempted_inside(request, span)

    def held(self, request: Request, span: Span) -> int:
        """Return those after the first step that could have taken it."""
        until, since = self._admitted(request, span), request.arrival_ns
        if self.tells_steps:
            index = bisect.bisect_left(self._starts, request.arrival_ns)
            since = self._starts[index] if index < len(self._starts) else until
        return span.overlap_ns(since, until) + preempted_inside(request, span)

    @staticmethod
    def _admitted(request: Request, span: Span) -> int:
        end = span.end_ns if request.end_ns is None else request.end_ns
        return end if request.admitted_ns is None else request.admitted_ns
