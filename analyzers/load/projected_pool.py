"""How many requests fill the KV pool, by what those that run hold already."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stallscope.analyzers.load.engines import clip, moments, queued
from stallscope.analyzers.load.pool_use import used_share
from stallscope.analyzers.load.put_back import FULL
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.measures import measure
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure

_LEAST_RUNNING = 4.0  # of fewer, one long one is no mean
_LEAST_SHARE = 1e-12  # of a pool, for a request: less is a gauge next to nothing, or rounded to it


@dataclass(frozen=True, slots=True)
class Projected:
    """`each` is the share of the pool that a running request holds on average, at its most.

    `at_once` is how many may run: those in flight, or the sequence cap where it is lower.
    """

    each: float
    in_flight: float
    at_once: float

    @property
    def full_at(self) -> int:
        """How many as these fill the pool; they still grow, so no more do."""
        return math.floor(1.0 / max(self.each, _LEAST_SHARE))


def observe_projected(capture: Capture, span: Span) -> Projected | None:
    """Return what an engine shows whose queue will not fit into its pool; None where it does.

    Only while something waits, and of a pool that was never full: else the pool itself tells.
    """
    found: dict[str, Projected] = {}
    full: set[str] = set()
    cap = capture.subject.max_num_seqs or math.inf
    for moment in clip(moments(capture.engine_samples), span.start_ns, span.end_ns):
        for name, values in moment.engines.items():
            used, running = used_share(values), values["running"]
            if used is not None and used >= FULL:
                full.add(name)
            if not used or running < _LEAST_RUNNING or not queued(values):
                continue
            before = found.get(name, Projected(0.0, 0.0, 0.0))
            flight = max(before.in_flight, running + queued(values))
            each = max(before.each, used / running)
            found[name] = Projected(each, flight, min(flight, cap))
    short = [p for name, p in found.items() if name not in full and p.full_at < p.at_once]
    return max(short, key=lambda p: p.at_once * p.each, default=None)


def projected_measure(capture: Capture, span: Span) -> tuple[Measure, ...]:
    """Return the number of requests at which the pool is full, at the most."""
    found = observe_projected(capture, span)
    if found is None:
        return ()
    source = "1 ÷ the largest mean share of the KV pool that a running request held"
    return (measure("kv_full_at", found.full_at, "bound", source, side="upper"),)


def projected_note(capture: Capture, span: Span) -> tuple[str, ...]:
    """Say that KV room comes next."""
    found = observe_projected(capture, span)
    if found is None:
        return ()
    return (
        f"A running request holds {found.each * 100:.2f} % of the KV pool, so that {found.full_at} "
        f"fill it, and {found.in_flight:.0f} are in flight: once they are let in, KV room is what "
        "is short, and more of them at once would be preempted.",
    )
