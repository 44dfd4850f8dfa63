"""A run of isolated phases is not a served load: what it cannot tell is left out, and said."""

from __future__ import annotations

import dataclasses

from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import NotObservable

NOTE = (
    "Phases were isolated: each wave of requests was prefilled and then decoded, both again and "
    "again until a stretch was long enough for the device's counters. Read each phase by itself "
    "(--goal ttft, --goal tpot): their shares of the time, step counts and KV traffic are this "
    "run's own making, and requests were not served as they would be."
)
WHY = "phases were isolated and repeated, so requests did not take the time that serving takes"
HOW = "run again without --isolate-phases"
_LOAD = ("waiting", "running")


def without_load(capture: Capture) -> Capture:
    """Leave out what would read as a load: requests, tokens, the queue. Others pass unchanged."""
    if not capture.subject.isolated_phases:
        return capture
    steps = (s._replace(waiting=None, running=None, blocked_by=None) for s in capture.steps)
    return dataclasses.replace(
        capture,
        steps=tuple(steps),
        requests=(),
        tokens=(),
        engine_samples=tuple(s for s in capture.engine_samples if s.name not in _LOAD),
    )


def notes(capture: Capture) -> tuple[str, ...]:
    """Say what kind of run this was."""
    return (NOTE,) if capture.subject.isolated_phases else ()


def unobserved_load(capture: Capture) -> tuple[NotObservable, ...]:
    """Say what such a run leaves open."""
    if not capture.subject.isolated_phases:
        return ()
    what = "latency, throughput and queueing of a served load"
    return (NotObservable(what, WHY, HOW),)
