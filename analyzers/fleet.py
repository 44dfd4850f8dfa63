"""Several replicas, each judged for itself, as a fleet: who is held, by what, and who has room."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stallscope.analyzers.load.counted import counted_throughput
from stallscope.analyzers.load.engines import moments
from stallscope.analyzers.load.span import run_span
from stallscope.analyzers.result import Diagnosis, Fleet, Replica
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture
from stallscope.profiler.wording import figure

# Nothing was measured for these lines: they are chosen so that what is named is plain to see.
_SLOW = 0.75  # of the others' tokens a second for each running request
_ALIKE = 1.25  # times the others' running requests: a larger batch is slower for good reason
_UNEVEN = 2.0  # times the requests in flight
_LEAST_IN_FLIGHT = 4.0
_LOADS = ("overloaded", "served", "underloaded", "idle")
_OPEN = ("none", "undetermined", "telemetry", "profiler")
_MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class Judged:
    """A replica's name, what was seen of it, and its diagnosis."""

    name: str
    capture: Capture
    diagnosis: Diagnosis


def fleet_of(judged: Sequence[Judged], t: Thresholds) -> tuple[tuple[Replica, ...], Fleet]:
    """Rank replicas, the most held first, and say what they have in common.

    Only replicas of one engine and model are compared with each other.
    """
    rows = [(_replica(one), one.diagnosis.subject) for one in judged]
    groups: dict[tuple[str | None, str | None], list[Replica]] = {}
    for row, subject in rows:
        groups.setdefault((subject.engine, subject.workload), []).append(row)
    marked = [row for group in groups.values() for row in _marked(group)]
    ranked = tuple(sorted(marked, key=_rank))
    uneven = [said for group in groups.values() if (said := _imbalance(group, t)) is not None]
    return ranked, Fleet(
        sentence=_sentence(ranked, uneven),
        common_limit=_common(ranked),
        stragglers=tuple(row.replica for row in ranked if row.remark is not None),
        imbalance=" ".join(uneven) or None,
    )


def _rank(row: Replica) -> tuple[bool, int, float, float, str]:
    load = _LOADS.index(row.load) if row.load in _LOADS else len(_LOADS)
    return not _stands(row), load, -(row.waiting or 0.0), -(row.in_flight or 0.0), row.replica


def _stands(row: Replica) -> bool:
    """Tell whether a replica has requests and gives them nothing: no limit of its load holds it."""
    return row.limit == "stalled"


def _replica(one: Judged) -> Replica:
    found = {m.name: m.value for m in one.diagnosis.measures}
    verdict = one.diagnosis.verdict
    return Replica(
        replica=one.name,
        bottleneck=verdict.bottleneck,
        confidence=verdict.confidence,
        load=verdict.load,
        sentence=verdict.sentence,
        in_flight=found.get("in_flight"),
        waiting=found.get("waiting_mean"),
        running=_mean_running(one.capture),
        kv_used=_most_used(one.capture),
        output_tokens_per_s=_rate(one.capture),
        limit=verdict.limit,
    )


def _mean_running(capture: Capture) -> float | None:
    """Return the mean over time of what runs in all of the replica's engines."""
    found = [m for m in moments(capture.engine_samples) if m.duration_ns]
    total_ns = sum(m.duration_ns for m in found)
    if not total_ns:
        return None
    running = (m.duration_ns * sum(v["running"] for v in m.engines.values()) for m in found)
    return sum(running) / total_ns


def _most_used(capture: Capture) -> float | None:
    return max(
        (s.value for s in capture.engine_samples if s.name == "kv_used_fraction"), default=None
    )


def _rate(capture: Capture) -> float | None:
    """Return the tokens that all of the replica's engines generated a second."""
    span = run_span(capture)
    if span is None:
        return None
    return counted_throughput(capture.engine_samples, span).output_tokens_per_s


def _marked(group: Sequence[Replica]) -> Iterator[Replica]:
    """Yield the group's replicas, a straggler with what tells it.

    A full KV pool is reason enough to be slow: what is preempted is computed again.
    """
    for row in group:
        speeds = [(s, o.running) for o in group if o is not row and (s := _speed(o)) is not None]
        own = _speed(row)
        if own is None or not speeds or row.bottleneck == "capacity" or _stands(row):
            yield row
            continue
        usual = statistics.median(s for s, _ in speeds)
        load = statistics.median(r for _, r in speeds if r is not None)
        if own < _SLOW * usual and (row.running or 0.0) <= _ALIKE * load:
            yield replace(
                row,
                remark=f"slow: {figure(own)} tokens/s for each running request, others "
                f"{figure(usual)}, "
                "at no more load",
            )
        else:
            yield row


def _speed(row: Replica) -> float | None:
    """Return tokens a second for each running request, of replicas at work."""
    if row.output_tokens_per_s is None or row.running is None or row.running < 1.0:
        return None
    return row.output_tokens_per_s / row.running


def _imbalance(group: Sequence[Replica], t: Thresholds) -> str | None:
    """Say who waits while another has room, or else whose share of the load is far from others'."""
    known = [r for r in group if r.waiting is not None and r.in_flight is not None]
    if len(known) < 2:
        return None
    held = max(known, key=lambda r: r.waiting or 0.0)
    free = min(known, key=lambda r: (_share(r), r.in_flight or 0.0))
    waits = _share(held) >= t.queue_wait_share and (held.waiting or 0.0) >= 1.0
    if waits and _share(free) < t.nothing_waits and (free.kv_used or 0.0) < t.near_limit:
        return (
            f"{held.replica} has {held.waiting:.1f} requests waiting while {free.replica} has room "
            f"({free.in_flight:.1f} in flight): the load is not spread by what each can take."
        )
    most = max(known, key=lambda r: r.in_flight or 0.0)
    least = min(known, key=lambda r: r.in_flight or 0.0)
    if (most.in_flight or 0.0) >= max(_LEAST_IN_FLIGHT, _UNEVEN * (least.in_flight or 0.0)):
        return (
            f"The load is uneven: {most.in_flight:.1f} requests in flight on {most.replica}, "
            f"{least.in_flight:.1f} on {least.replica}."
        )
    return None


def _share(row: Replica) -> float:
    return (row.waiting or 0.0) / row.in_flight if row.in_flight else 0.0


def _common(ranked: Sequence[Replica]) -> str | None:
    """Return the class that limits at least half of the replicas, two of them at least."""
    held = [row.bottleneck for row in ranked if not _stands(row)]
    for name in dict.fromkeys(name for name in held if name not in _OPEN):
        count = held.count(name)
        if count >= 2 and count * 2 >= len(ranked):
            return name
    return None


def _sentence(ranked: Sequence[Replica], uneven: Sequence[str]) -> str:
    by_class: dict[str, list[str]] = {}
    for row in ranked:
        by_class.setdefault("stalled" if _stands(row) else row.bottleneck, []).append(row.replica)
    parts = [_of_class(name, of, len(ranked)) for name, of in by_class.items()]
    slow = [row.replica for row in ranked if row.remark is not None]
    more = [*uneven, *([f"Slower than the others: {_named(slow)}."] if slow else [])]
    text = "; ".join(parts)
    return " ".join([f"{text[0].upper()}{text[1:]}.", *more])


def _of_class(name: str, replicas: Sequence[str], count: int) -> str:
    how = {"none": "nothing limits", "undetermined": "it is undetermined what limits"}
    if name == "stalled":
        verb = "stands" if len(replicas) == 1 else "stand"
        return f"{len(replicas)} of {count} replicas {verb} still ({_named(replicas)})"
    said = how.get(name, f"{name} limits")
    return f"{said} {len(replicas)} of {count} replicas ({_named(replicas)})"


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
