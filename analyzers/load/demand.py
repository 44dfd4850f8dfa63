"""What was asked of the engine: queueing, idleness, and the load that follows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.analyzers.benchmark.facts import is_timed_by_client
from stallscope.analyzers.load.device_demand import is_telemetry_only, observe_idle
from stallscope.analyzers.load.gauge_signs import at_end, fills, rises, worst_engine
from stallscope.analyzers.load.gauges import Gauge, gauges, in_system
from stallscope.analyzers.load.one_reading import is_one_reading
from stallscope.analyzers.load.put_back import Fall, fallen_in, put_back
from stallscope.analyzers.load.span import Span, union_ns
from stallscope.analyzers.load.waits import Waits, present, stay
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, Request
from stallscope.profiler.evidence import Provenance


@dataclass(frozen=True, slots=True)
class Demand:
    """Load figures of a span; None where nothing recorded tells.

    `queued_share` is waiting time (never admitted, or preempted) over time in the system;
    `idle_share` the part of the span with nothing in flight; `in_flight` and `waiting` are means
    over time. `step_wait_share` is the part of `queued_share` in which requests waited only for the
    step that ran when they came, and `worst_engine_share` the largest queued share of one of
    several engines. `is_moment` says that all of it was read at one moment; `at_end` are requests
    that ran and waited when it was read last, which lasts for no time, with none before.
    """

    queued_share: float | None
    idle_share: float | None
    in_flight: float | None
    waiting: float | None
    waiting_grows: bool
    provenance: Provenance
    source: str
    step_wait_share: float | None = None
    worst_engine_share: float | None = None
    is_moment: bool = False
    at_end: tuple[float, float] | None = None

    @property
    def when(self) -> str:
        """Say what the figures are of."""
        return "at that moment" if self.is_moment else "on average"

    def count(self, requests: float | None) -> str:
        """Say how many requests: at one moment they are whole, a mean has a part."""
        return f"{requests or 0.0:.{0 if self.is_moment else 1}f}"

    @property
    def held_share(self) -> float | None:
        """The queued share that no running step explains: something held requests back."""
        if self.queued_share is None:
            return None
        held = max(0.0, self.queued_share - (self.step_wait_share or 0.0))
        return max(held, self.worst_engine_share or 0.0)

    @property
    def tells_served(self) -> bool:
        """Whether it is known that little waited; a lower bound of the queue leaves that open."""
        return self.queued_share is not None and self.provenance != "bound"


UNKNOWN_DEMAND = Demand(None, None, None, None, False, "derived", "nothing recorded")


def _from_requests(capture: Capture, span: Span) -> Demand:
    requests = present(capture)
    waits = Waits([s for s in capture.steps if not s.warmup])
    stayed = sum(stay(r, span) for r in requests)
    waited = sum(waits.all(r, span) for r in requests)
    held = sum(waits.held(r, span) for r in requests)
    flights = (
        (
            max(r.arrival_ns, span.start_ns),
            min(span.end_ns if r.end_ns is None else r.end_ns, span.end_ns),
        )
        for r in requests
        if stay(r, span)
    )
    duration = span.duration_ns or 1
    has_unseen_waits = any(r.preemptions and r.preempted_ns is None for r in requests)
    return Demand(
        queued_share=waited / stayed if stayed else 0.0,
        idle_share=1.0 - union_ns(flights) / duration,
        in_flight=stayed / duration,
        waiting=waited / duration,
        waiting_grows=_grows(requests, waits, span),
        provenance="bound" if has_unseen_waits else "measured",
        source="arrival and admission of each request; how long preempted ones waited is not known"
        if has_unseen_waits
        else "arrival, admission and end of each request",
        step_wait_share=(waited - held) / stayed if waits.tells_steps and stayed else None,
    )


def _grows(requests: Sequence[Request], waits: Waits, span: Span) -> bool:
    """Tell whether the mean queue rises from third to third, by one request or more in all."""
    third = span.duration_ns // 3
    if third == 0:
        return False
    first = Span(span.start_ns, span.start_ns + third)
    middle = Span(first.end_ns, first.end_ns + third)
    last = Span(middle.end_ns, span.end_ns)
    means = [sum(waits.held(r, s) for r in requests) / s.duration_ns for s in (first, middle, last)]
    return means[0] < means[1] < means[2] and means[2] >= means[0] + 1.0


def _from_gauges(rows: Sequence[Gauge], falls: Sequence[Fall]) -> Demand:
    total = sum(g.duration_ns for g in rows)
    waiting = sum(g.waiting * g.duration_ns for g in rows)
    idle = sum(g.duration_ns for g in rows if g.waiting == 0 and g.running == 0)
    all_ns = in_system(rows)
    return Demand(
        queued_share=waiting / all_ns if all_ns else 0.0,
        idle_share=idle / total,
        in_flight=all_ns / total,
        waiting=waiting / total,
        # A first wave that was let in hides what builds up behind it.
        waiting_grows=rises(rows) or rises(rows[len(rows) // 2 :]) or fills(rows, falls),
        provenance="derived",
        source="waiting and running gauges (Little's law)",
    )


def observe_demand(capture: Capture, span: Span) -> Demand:
    """Measure the load in a span from requests, else from gauges, else from idle devices.

    Where only devices were watched, waiting stays unknown: a GPU may idle before a full queue.
    """
    if is_telemetry_only(capture):
        found = observe_idle(capture, span)
        if found is None:
            return UNKNOWN_DEMAND
        idle, source = found
        return dataclasses.replace(UNKNOWN_DEMAND, idle_share=idle, source=source)
    if not span.duration_ns:
        return UNKNOWN_DEMAND
    if capture.requests and not is_timed_by_client(capture):
        return _from_requests(capture, span)
    rows = gauges(capture, span)
    if rows and sum(g.duration_ns for g in rows):
        of_gauges = _from_gauges(rows, fallen_in(put_back(capture.engine_samples), span))
        is_moment = span.is_instant or is_one_reading(capture)
        return dataclasses.replace(
            of_gauges,
            worst_engine_share=worst_engine(capture, span),
            is_moment=is_moment,
            at_end=at_end(capture, span, rows),
        )
    return UNKNOWN_DEMAND


def classify_load(demand: Demand, thresholds: Thresholds) -> str:
    """Name the load: idle, underloaded, overloaded or served; unknown demand counts as served.

    Waiting for a running step to end is no queue: it takes an arrival at any load.
    """
    queued, idle = demand.held_share, demand.idle_share
    if idle is not None and idle > thresholds.idle_share and queued is None:
        return "idle"
    if queued is None or idle is None:
        return "served"
    if idle > thresholds.idle_share:
        return "idle"
    if queued >= thresholds.queue_wait_share or demand.waiting_grows:
        return "overloaded"
    if idle >= thresholds.underloaded_share and queued < thresholds.nothing_waits:
        return "underloaded"
    return "served"


def is_client_limited(demand: Demand, offered: float | None, thresholds: Thresholds) -> bool:
    """Tell whether less than half of the offered concurrency arrived, and nothing waits."""
    if offered is None or demand.in_flight is None or demand.held_share is None:
        return False
    few = demand.in_flight < thresholds.client_share * offered
    return few and demand.held_share < thresholds.nothing_waits
