"""Preemption by the gauges alone: an engine's own counter moves up to a minute late.

vLLM counts a preemption with the next output of the request, so that its counter stands still for
as long as the request waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stallscope.analyzers.load.engines import Values, moments
from stallscope.analyzers.load.kept import kept
from stallscope.analyzers.load.pool_use import used_share
from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import EngineSample

FULL = 0.97  # vLLM 0.32 preempted at 98 to 100 % of its pool
_COUNTERS = (
    *("finished_total", "arrived_total", "preemptions_total"),
    *("input_tokens_total", "output_tokens_total"),
)
LEAST = 2  # one request that was given up and one that came look like one preemption


@dataclass(frozen=True, slots=True)
class Fall:
    """Running requests that went back to an engine's queue between two samples.

    `is_least` where ends were counted too: then at least so many did.
    """

    engine: str
    start_ns: int
    end_ns: int
    requests: float
    is_least: bool
    running: tuple[float, float]
    waiting: tuple[float, float]
    counted: float | None  # by the engine's own counter meanwhile


@kept
def put_back(samples: Sequence[EngineSample]) -> tuple[Fall, ...]:
    """Return the falls that only preemption explains, engine by engine; none for less than two.

    The pool is full, running falls by more than ended, and waiting rises by more than arrived.
    Where ends are not counted it must fall twice in a row, waiting may rise by no more than it
    falls, and no prompt may be taken in meanwhile.
    """
    found = moments(samples)
    engines = sorted({name for m in found for name in m.engines})
    falls = [
        fall
        for engine in engines
        for fall in _of_engine(
            engine, [(m.start_ns, m.engines[engine]) for m in found if engine in m.engines]
        )
    ]
    return tuple(falls) if sum(f.requests for f in falls) >= LEAST else ()


def fallen_in(falls: Sequence[Fall], span: Span) -> tuple[Fall, ...]:
    """Keep those that a sample inside a span showed."""
    return tuple(f for f in falls if span.start_ns < f.end_ns <= span.end_ns)


def _of_engine(engine: str, rows: Sequence[tuple[int, Values]]) -> Iterator[Fall]:
    in_row: list[Fall] = []
    for (start_ns, a), (end_ns, b) in pairwise(rows):
        if a["running"] == b["running"] and a["waiting"] == b["waiting"]:
            continue
        fall = _fall(engine, start_ns, end_ns, a, b)
        if fall is not None and fall.is_least:
            yield fall
        elif fall is not None:
            in_row.append(fall)
            continue
        if len(in_row) >= LEAST:
            yield from in_row
        in_row = []
    if len(in_row) >= LEAST:
        yield from in_row


def _fall(engine: str, start_ns: int, end_ns: int, a: Values, b: Values) -> Fall | None:
    fell, rose = a["running"] - b["running"], b["waiting"] - a["waiting"]
    if fell <= 0 or rose <= 0:  # the usual case of two samples
        return None
    if any(b[name] < a[name] for name in _COUNTERS if name in a and name in b):
        return None  # an engine that was started again, or samples out of order
    ended = _rise(a, b, "finished_total")
    if ended is not None:
        # The one that went back left its room: the sample after it may see the pool less full.
        is_full = max(_used(a), _used(b)) >= FULL
        requests = min(fell - ended, rose - (_rise(a, b, "arrived_total") or 0.0))
    else:
        took = _rise(a, b, "input_tokens_total") or 0.0
        is_full = min(_used(a), _used(b)) >= FULL and rose <= fell and took <= 0
        requests = min(fell, rose)
    if not is_full or requests <= 0:
        return None
    running, waiting = (a["running"], b["running"]), (a["waiting"], b["waiting"])
    counted = _rise(a, b, "preemptions_total")
    return Fall(engine, start_ns, end_ns, requests, ended is not None, running, waiting, counted)


def _used(values: Values) -> float:
    share = used_share(values)
    return 0.0 if share is None else share


def _rise(a: Values, b: Values, name: str) -> float | None:
    return max(0.0, b[name] - a[name]) if name in a and name in b else None
