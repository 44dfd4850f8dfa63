"""What an engine says of itself now and then, as samples over time."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from stallscope.profiler.capture import EngineSample

_S = 1_000_000_000


class Reading(NamedTuple):
    """One line's gauges at the end of a period, and its rates over it; None is not stated.

    `waiting` counts all that were taken in and do not run, `kv_used` is a fraction of the pool,
    rates are tokens per second.
    """

    t_ns: int
    engine: str
    waiting: float
    running: float
    kv_used: float | None = None
    prompt_rate: float | None = None
    output_rate: float | None = None
    prefix_hits: float | None = None
    external_hits: float | None = None


def spread(times: Sequence[int]) -> list[int]:
    """Place lines of the same second evenly within it, in their order.

    The first and the last second may be cut: where they hold fewer lines than the next or the one
    before, those stand as close together as there, late in the first and early in the last.
    """
    seconds = [(t_ns, len(list(group))) for t_ns, group in groupby(times)]
    if len(seconds) == 1:
        return _placed(*seconds[0], seconds[0][1])
    (first, count), (second, after) = seconds[:2]
    pace = max(count, after) if second == first + _S else count
    start = first + (pace - count) * _S // pace
    placed = [start + i * _S // pace for i in range(count)] if count > 1 else [first]
    for t_ns, count in seconds[1:-1]:
        placed += _placed(t_ns, count, count)
    (before, pace), (last, count) = seconds[-2:]
    return placed + _placed(last, count, max(count, pace) if last == before + _S else count)


def _placed(t_ns: int, count: int, pace: int) -> list[int]:
    return [t_ns + i * _S // pace for i in range(count)]


def by_engine(readings: Iterable[Reading]) -> Iterator[tuple[str, list[Reading]]]:
    """Yield each engine with its readings, lines of one second spread over it."""
    found: dict[str, list[Reading]] = {}
    for reading in readings:
        found.setdefault(reading.engine, []).append(reading)
    for engine, rows in found.items():
        times = spread([r.t_ns for r in rows])
        yield engine, [r._replace(t_ns=t) for r, t in zip(rows, times, strict=True)]


def periodic_samples(readings: Sequence[Reading], period_s: float) -> list[EngineSample]:
    """Return samples of lines that come every period, and not while nothing happens.

    A line speaks for the period it closes: its rates are means over it, and its gauges, read at its
    end, are taken to hold for it. A period in which tokens were counted had at least one request
    running, whatever the gauge at its end says. Where lines are further apart than one and a half
    periods nothing was logged, and the last gauges hold until the period of the next line begins.
    A last line that counts nothing says that work had ended when its period began; how long the
    silence lasted that it opens no line says, so that the record ends there.
    `period_s` is what the engine does by default; with three lines or more it is their median
    distance.
    """
    return [
        s for _, rows in by_engine(readings) for s in _one_engine(rows, _period(rows, period_s))
    ]


def _period(rows: Sequence[Reading], default_s: float) -> int:
    gaps = [b.t_ns - a.t_ns for a, b in pairwise(rows)]
    found = int(statistics.median(gaps)) if len(gaps) >= 2 else 0
    return found if found >= _S else round(default_s * _S)


def _one_engine(rows: Sequence[Reading], period_ns: int) -> list[EngineSample]:
    found: list[EngineSample] = []
    totals = {"input_tokens_total": 0.0, "output_tokens_total": 0.0}
    counts = totals if any(r.prompt_rate is not None for r in rows) else {}
    for before, row, after in zip([None, *rows], rows, [*rows[1:], None], strict=False):
        start_ns = row.t_ns - period_ns
        if before is not None and before.t_ns + period_ns // 2 >= start_ns:
            start_ns = before.t_ns
        running = max(row.running, 1.0) if _counts_tokens(row) else row.running
        found += _gauges(row, start_ns, running)
        found += _counters(start_ns, row.engine, counts)
        if after is None and before is not None and _ends_work(before, row):
            break
        seconds = (row.t_ns - start_ns) / _S
        totals["input_tokens_total"] += (row.prompt_rate or 0.0) * seconds
        totals["output_tokens_total"] += (row.output_rate or 0.0) * seconds
        if after is None or row.t_ns + period_ns * 3 // 2 < after.t_ns:
            found += _gauges(row, row.t_ns, row.running)
            found += _counters(row.t_ns, row.engine, counts)
    return found


def _counts_tokens(row: Reading) -> bool:
    return (row.prompt_rate or 0.0) + (row.output_rate or 0.0) > 0


def _ends_work(before: Reading, row: Reading) -> bool:
    """Tell whether a line counts nothing after one that did."""
    is_silent = not (_counts_tokens(row) or row.waiting or row.running)
    return is_silent and row.prompt_rate is not None and _counts_tokens(before)


def _counters(t_ns: int, engine: str, totals: dict[str, float]) -> list[EngineSample]:
    return [EngineSample(t_ns, engine, name, total) for name, total in totals.items()]


def _gauges(row: Reading, t_ns: int, running: float) -> list[EngineSample]:
    named = (
        ("waiting", row.waiting),
        ("running", running),
        ("kv_used_fraction", row.kv_used),
        ("prefix_hit_fraction", row.prefix_hits),
        ("external_prefix_hit_fraction", row.external_hits),
    )
    return [EngineSample(t_ns, row.engine, name, v) for name, v in named if v is not None]
