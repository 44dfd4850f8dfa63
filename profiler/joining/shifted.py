"""A capture with all its times moved onto another clock."""

from __future__ import annotations

from dataclasses import replace

from stallscope.profiler.capture import Capture, Cut, Request


def shifted(capture: Capture, by_ns: int) -> Capture:
    """Add `by_ns` to every time of a capture."""
    if not by_ns:
        return capture
    steps = (
        s._replace(start_ns=s.start_ns + by_ns, end_ns=s.end_ns + by_ns) for s in capture.steps
    )
    return replace(
        capture,
        steps=tuple(steps),
        requests=tuple(_request(r, by_ns) for r in capture.requests),
        tokens=tuple(t._replace(t_ns=t.t_ns + by_ns) for t in capture.tokens),
        device_samples=tuple(s._replace(t_ns=s.t_ns + by_ns) for s in capture.device_samples),
        engine_samples=tuple(s._replace(t_ns=s.t_ns + by_ns) for s in capture.engine_samples),
        events=tuple(e._replace(t_ns=e.t_ns + by_ns) for e in capture.events),
        cut=None if capture.cut is None else Cut(capture.cut.t_ns + by_ns, capture.cut.note),
    )


def _request(request: Request, by_ns: int) -> Request:
    admitted_ns, first_ns, end_ns = request.admitted_ns, request.first_token_ns, request.end_ns
    return request._replace(
        arrival_ns=request.arrival_ns + by_ns,
        admitted_ns=None if admitted_ns is None else admitted_ns + by_ns,
        first_token_ns=None if first_ns is None else first_ns + by_ns,
        end_ns=None if end_ns is None else end_ns + by_ns,
    )
