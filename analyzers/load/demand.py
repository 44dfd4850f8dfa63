"""What was asked of the engine: queueing, idleness, and the load that follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, Request, Step
from stallscope.profiler.evidence import Provenance


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the run on the capture's clock."""

    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        """Its length."""
        return max(0, self.end_ns - self.start_ns)

    def overlap_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how much of [start, end) lies in the span."""
        return max(0, min(end_ns, self.end_ns) - max(start_ns, self.start_ns))


@dataclass(frozen=True, slots=True)
class Demand:
    """Load figures of a span; None where nothing recorded tells.

    `queued_share` is waiting time (never admitted, or preempted) over time in the system;
    `idle_share` the part of the span with nothing in flight; `in_flight` and `waiting` are means
    over time.
    """

    queued_share: float | None
    idle_share: float | None
    in_flight: float | None
    waiting: float | None
    waiting_grows: bool
    provenance: Provenance
    source: str


UNKNOWN_DEMAND = Demand(None, None, None, None, False, "derived", "nothing recorded")


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
        return Span(min(gauges), max(gauges))
    return Span(min(starts), max(ends)) if starts and ends else None


def _moments(request: Request) -> Iterator[int]:
    moments = (request.arrival_ns, request.admitted_ns, request.first_token_ns, request.end_ns)
    return (t for t in moments if t is not None)


def _waits(request: Request, span: Span) -> int:
    """Nanoseconds that a request waited inside the span.

    Preempted time is spread evenly over the request's stay after admission: rows keep its sum.
    """
    end = span.end_ns if request.end_ns is None else request.end_ns
    admitted = end if request.admitted_ns is None else request.admitted_ns
    queued = span.overlap_ns(request.arrival_ns, admitted)
    stay = end - admitted
    if not request.preempted_ns or stay <= 0:
        return queued
    return queued + round(request.preempted_ns * span.overlap_ns(admitted, end) / stay)


def _from_requests(requests: Sequence[Request], span: Span) -> Demand:
    inside = [
        (r, span.overlap_ns(r.arrival_ns, span.end_ns if r.end_ns is None else r.end_ns))
        for r in requests
    ]
    stay = sum(ns for _, ns in inside)
    waited = sum(_waits(r, span) for r, _ in inside)
    flights = (
        (
            max(r.arrival_ns, span.start_ns),
            min(span.end_ns if r.end_ns is None else r.end_ns, span.end_ns),
        )
        for r, ns in inside
        if ns
    )
    duration = span.duration_ns or 1
    return Demand(
        queued_share=waited / stay if stay else 0.0,
        idle_share=1.0 - union_ns(flights) / duration,
        in_flight=stay / duration,
        waiting=waited / duration,
        waiting_grows=_grows(requests, span),
        provenance="measured",
        source="arrival, admission and end of each request",
    )


def _grows(requests: Sequence[Request], span: Span) -> bool:
    """Tell whether the mean queue rises from third to third, by one request or more in all."""
    third = span.duration_ns // 3
    if third == 0:
        return False
    first = Span(span.start_ns, span.start_ns + third)
    middle = Span(first.end_ns, first.end_ns + third)
    last = Span(middle.end_ns, span.end_ns)
    means = [sum(_waits(r, s) for r in requests) / s.duration_ns for s in (first, middle, last)]
    return means[0] < means[1] < means[2] and means[2] >= means[0] + 1.0


@dataclass(frozen=True, slots=True)
class Gauge:
    """The engine's waiting and running requests for a stretch of time."""

    duration_ns: int
    waiting: float
    running: float


def gauges(capture: Capture, span: Span) -> tuple[Gauge, ...]:
    """Return waiting and running over time: from the steps, else from the engine's samples."""
    steps = [s for s in capture.steps if not s.warmup]
    if steps and all(s.waiting is not None and s.running is not None for s in steps):
        return tuple(_step_gauges(steps, span))
    series: dict[int, dict[str, float]] = {}
    for sample in capture.engine_samples:
        if sample.name in ("waiting", "running") and span.start_ns <= sample.t_ns <= span.end_ns:
            row = series.setdefault(sample.t_ns, {})
            row[sample.name] = row.get(sample.name, 0.0) + sample.value
    times = sorted(t for t, row in series.items() if len(row) == 2)
    return tuple(
        Gauge(b - a, series[a]["waiting"], series[a]["running"])
        for a, b in zip(times, times[1:], strict=False)
    )


def _step_gauges(steps: Sequence[Step], span: Span) -> Iterator[Gauge]:
    """Yield each step's gauges, and nothing in flight for a gap that no request lived through.

    A step that decodes brought its requests over the gap before it, and so did a queue.
    """
    reached, queued = None, False
    for step in sorted(steps, key=lambda s: s.start_ns):
        if reached is not None and not step.decode_requests and not queued:
            idle_ns = span.overlap_ns(reached, step.start_ns)
            if idle_ns:
                yield Gauge(idle_ns, 0, 0)
        inside_ns = span.overlap_ns(step.start_ns, step.end_ns)
        if inside_ns:
            yield Gauge(inside_ns, step.waiting or 0, step.running or 0)
        reached, queued = max(reached or 0, step.end_ns), bool(step.waiting)


def _from_gauges(rows: Sequence[Gauge]) -> Demand:
    total = sum(g.duration_ns for g in rows)
    waiting = sum(g.waiting * g.duration_ns for g in rows)
    running = sum(g.running * g.duration_ns for g in rows)
    idle = sum(g.duration_ns for g in rows if g.waiting == 0 and g.running == 0)
    in_system = waiting + running
    third = max(1, len(rows) // 3)
    early = sum(g.waiting for g in rows[:third]) / third
    late = [g.waiting for g in rows[-third:]]
    return Demand(
        queued_share=waiting / in_system if in_system else 0.0,
        idle_share=idle / total,
        in_flight=in_system / total,
        waiting=waiting / total,
        waiting_grows=len(rows) >= 6
        and sum(late) / third >= early * 1.5 + 1.0
        and min(late) > early,
        provenance="derived",
        source="waiting and running gauges (Little's law)",
    )


def observe_demand(capture: Capture, span: Span) -> Demand:
    """Measure the load in a span from requests, else from gauges, else say nothing."""
    if not span.duration_ns:
        return UNKNOWN_DEMAND
    if capture.requests:
        return _from_requests(capture.requests, span)
    rows = gauges(capture, span)
    if rows and sum(g.duration_ns for g in rows):
        return _from_gauges(rows)
    return UNKNOWN_DEMAND


def classify_load(demand: Demand, thresholds: Thresholds) -> str:
    """Name the load: idle, underloaded, overloaded or served; unknown demand counts as served."""
    queued, idle = demand.queued_share, demand.idle_share
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
    if offered is None or demand.in_flight is None or demand.queued_share is None:
        return False
    few = demand.in_flight < thresholds.client_share * offered
    return few and demand.queued_share < thresholds.nothing_waits
