"""An engine whose page does not change while requests run: it hangs, and is not steady."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from stallscope.profiler.capture import EngineSample, Event
from stallscope.profiler.wording import counted

_S = 1_000_000_000
_LEAST_NS = 30 * _S
_LEAST_WITHOUT_KV_NS = 120 * _S  # a long prompt moves no counter, but it fills the cache
_MOST = 0.5  # of the pages' time, from which on nothing else counts
_CONFIDENCE = 0.8
_MOVES = ("output_tokens_total", "steps_total")  # one of these must be told, or nothing can move


class Stretch(NamedTuple):
    """How long an engine's page stayed the same, and what it told."""

    duration_ns: int
    engine: str
    values: Mapping[str, float]


def standstill(samples: Sequence[EngineSample]) -> Iterator[Event]:
    """Yield a check for the longest stretch in which nothing moved; most of the time decides."""
    times = [s.t_ns for s in samples]
    longest = max(_stretches(samples), default=None, key=lambda s: s.duration_ns)
    if longest is None or longest.duration_ns < _least_ns(longest.values):
        return
    data: dict[str, object] = {"sentence": _sentence(longest)}
    if longest.duration_ns >= _MOST * (max(times) - min(times)):
        data |= {"class": "scheduling", "limit": "stalled", "blocks": ["verdict"]}
        data |= {"most_confidence": _CONFIDENCE}
    yield Event(0, "check", None, data)


def _least_ns(values: Mapping[str, float]) -> int:
    return _LEAST_NS if "kv_used_fraction" in values else _LEAST_WITHOUT_KV_NS


def _sentence(stretch: Stretch) -> str:
    running, waiting = stretch.values["running"], stretch.values.get("waiting", 0.0)
    return (
        f"The engine stands still: for {stretch.duration_ns / _S:,.0f} s none of its gauges and "
        f"counters moved while {counted(round(running), 'request')} ran and {waiting:.0f} waited."
    )


def _stretches(samples: Sequence[EngineSample]) -> Iterator[Stretch]:
    by_engine: dict[str, dict[int, dict[str, float]]] = {}
    for s in samples:
        by_engine.setdefault(s.engine, {}).setdefault(s.t_ns, {})[s.name] = s.value
    for engine, rows in by_engine.items():
        begin = None
        for (before_ns, before), (t_ns, row) in pairwise(sorted(rows.items())):
            if row != before or not row.get("running") or not any(n in row for n in _MOVES):
                begin = None
                continue
            begin = before_ns if begin is None else begin
            yield Stretch(t_ns - begin, engine, row)
