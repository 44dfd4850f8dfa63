"""Which limit held the queue, by sampled gauges of one or several engines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from stallscope.analyzers.load.engines import Moment, Values, clip, moments, queued
from stallscope.analyzers.load.prompt_rate import is_flat
from stallscope.analyzers.load.queue_head import head_needs
from stallscope.analyzers.load.queue_limits import Admission
from stallscope.analyzers.load.room import AT_CAP, Room
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.load.standstill import Lap, standing
from stallscope.analyzers.load.token_budget import budgets_hit
from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import Subject

_BATCH = 8  # so many running, and always as many, is a cap that nobody told us
_PINNED = 0.8  # of the queued time at the highest number of running requests
_UNEVEN = 0.5  # an engine with less than this part of another's requests could take some


@dataclass(frozen=True, slots=True)
class _Reading:
    """One engine at one moment, and its counters at the next."""

    engine: str
    start_ns: int
    duration_ns: int
    values: Values
    after: Values
    room: Room
    room_after: Room

    @property
    def gives_way(self) -> bool:
        """Whether running then falls and the queue grows, while the pool becomes full.

        Slots became free and nobody was let in: it was not the sequence cap that held the queue.
        """
        falls = self.after["running"] < self.values["running"]
        grows = queued(self.after) > queued(self.values)
        return falls and grows and bool(self.room_after.kv_is_short)


def _readings(
    found: Sequence[Moment], subject: Subject, needs: Sequence[int | None]
) -> Iterator[_Reading]:
    most: dict[str, float] = {}
    for moment in found:
        for engine, values in moment.engines.items():
            most[engine] = max(most.get(engine, 0.0), values["running"])
    for now, after, need in zip(found, found[1:] or found, needs, strict=False):
        for engine, values in now.engines.items():
            room = _room(values, subject, need, most[engine])
            later = after.engines.get(engine, values)
            left = _room(later, subject, None, most[engine])
            yield _Reading(engine, now.start_ns, now.duration_ns, values, later, room, left)


def _room(values: Values, subject: Subject, need: int | None, most: float) -> Room:
    """Take KV use in bytes, or as a fraction where an engine tells no more.

    A sample between two steps sees slots that the next one fills: the cap begins at AT_CAP of it.
    """
    used, total = values.get("kv_used_bytes"), values.get("kv_total_bytes")
    is_share = (used is None or not total) and "kv_used_fraction" in values
    if is_share:
        used, total, need = values["kv_used_fraction"], 1.0, None
    cap = subject.max_num_seqs
    near = None if cap is None else math.ceil(AT_CAP * cap)
    return Room(values["running"], near, used, total, need, most, is_share)


def _engine(reading: _Reading) -> str:
    return reading.engine


def _takes_prompts_steadily(queue: Sequence[_Reading]) -> bool:
    """Tell whether prompts came in at a flat rate without a batch that never changes.

    While something waited, or at least while there was room under every cap: at a cap, prompts come
    in no faster than requests end.
    """
    name = "input_tokens_total"
    rows = [r for r in queue if name in r.values and name in r.after]
    most = max((r.values["running"] for r in rows), default=0.0)
    at_most = sum(r.duration_ns for r in rows if r.values["running"] == most)
    is_pinned = at_most >= _PINNED * sum(r.duration_ns for r in rows)
    if is_pinned and most >= _BATCH:
        return False
    under_caps = [r for r in rows if r.room.is_under_caps]
    return is_flat(_taken(rows, name)) or is_flat(_taken(under_caps, name))


def _taken(rows: Sequence[_Reading], name: str) -> list[tuple[int, float]]:
    """Pair durations with tokens; a counter set back by a restart tells nothing of its interval."""
    taken = [(r.duration_ns, r.after[name] - r.values[name]) for r in rows]
    return [(ns, tokens) for ns, tokens in taken if tokens >= 0]


def _own_limits(readings: Sequence[_Reading], hits_budget: bool) -> dict[int, str]:
    """Name what held one engine's queue, by the start of each reading in which it had one."""
    queue = [r for r in readings if queued(r.values)]
    laps = (Lap(r.start_ns, r.duration_ns, r.values, r.after) for r in readings)
    stalls, is_steady = standing(laps), _takes_prompts_steadily(queue)
    under_caps = ("tokens" if hits_budget else "prefill") if is_steady else "unknown"
    return {r.start_ns: _limit(r, r.start_ns in stalls, under_caps) for r in queue}


def _limit(reading: _Reading, is_stalled: bool, under_caps: str) -> str:
    if reading.values.get("front_waiting", 0.0) > reading.values["waiting"]:
        return "front"
    if reading.values.get("waiting_deferred", 0.0) > reading.values["waiting"] / 2:
        return "deferred"
    if is_stalled and reading.values["running"] > 1:
        return "stalled"  # requests that hold a full pool still get their tokens
    if reading.room.kv_is_short or reading.room.is_tight or reading.gives_way:
        return "kv"
    if is_stalled and reading.room.kv_is_short is False:
        return "stalled"  # a cap holds the queue, and the rest get their tokens
    if reading.room.is_at_cap:
        return "seqs"
    return under_caps if reading.room.is_under_caps else "unknown"


def _flight(values: Values) -> float:
    return values["running"] + queued(values)


def _is_uneven(values: Values, others: Sequence[_Reading]) -> bool:
    """Tell whether another engine, with nothing waiting and far less to do, could have served."""
    return any(
        not queued(other.values)
        and not other.room.kv_is_short
        and other.values["running"] < values["running"]
        and _flight(other.values) <= _UNEVEN * _flight(values)
        for other in others
    )


def _weights(
    readings: Sequence[_Reading], span: Span, budgets: Mapping[str, int]
) -> dict[str, float]:
    """Share each moment's time inside the span out by how much waits at each engine."""
    limits = {
        engine: _own_limits(list(rows), engine in budgets)
        for engine, rows in groupby(sorted(readings, key=_engine), key=_engine)
    }
    weights: dict[str, float] = {}
    for start_ns, group in groupby(readings, key=lambda r: r.start_ns):
        rows = list(group)
        waiting = sum(queued(r.values) for r in rows)
        inside_ns = span.overlap_ns(start_ns, start_ns + rows[0].duration_ns)
        for r in rows:
            if not queued(r.values):
                continue
            is_uneven = _is_uneven(r.values, rows)
            limit = "imbalance" if is_uneven else limits[r.engine][start_ns]
            part = inside_ns * queued(r.values) / waiting
            weights[limit] = weights.get(limit, 0.0) + part
    return weights


def from_samples(capture: Capture, span: Span, kv_bytes_per_token: int | None) -> Admission | None:
    """Name the limits of the moments in which something waited, in any engine."""
    found = moments(capture.engine_samples)
    at = [(m.start_ns, m.start_ns) for m in found]
    needs = head_needs(capture, at, kv_bytes_per_token)
    budgets = budgets_hit(found)
    weights = _weights(list(_readings(found, capture.subject, needs)), span, budgets)
    waiting_ns = sum(weights.values())
    if not waiting_ns:
        return None
    inside = clip(found, span.start_ns, span.end_ns)
    means = _mean_in_flight(inside)
    return Admission(
        shares={k: v / waiting_ns for k, v in weights.items() if v},
        share_waiting=waiting_ns / sum(m.duration_ns for m in inside),
        provenance="derived",
        source="sampled gauges against the engine's limits",
        in_flight=tuple(mean for mean, _ in means),
        fullest=means[0][1] if means else None,
        budget=min(budgets.values(), default=None),
    )


def _mean_in_flight(found: Sequence[Moment]) -> list[tuple[float, str]]:
    """Return each engine's mean over moments and its name, fullest first; none for a lone one."""
    names = {name for m in found for name in m.engines}
    if len(names) < 2:
        return []
    means = []
    for name in names:
        seen = [(m.duration_ns, _flight(m.engines[name])) for m in found if name in m.engines]
        ns = sum(duration for duration, _ in seen)
        means.append((sum(duration * flight for duration, flight in seen) / ns, name))
    return sorted(means, key=lambda mean: (-mean[0], mean[1]))
