"""Sampled gauges and counters over time, engine by engine: the one reader of engine samples."""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter
from typing import NamedTuple

from stallscope.analyzers.load.kept import kept
from stallscope.analyzers.load.span import INSTANT_NS
from stallscope.profiler.capture import EngineSample

Values = Mapping[str, float]
_time, _start = attrgetter("t_ns"), attrgetter("start_ns")


class Moment(NamedTuple):
    """What each engine last said, from `start_ns` for `duration_ns`; the last one has none."""

    start_ns: int
    duration_ns: int
    engines: Mapping[str, Values]


@dataclass(frozen=True, slots=True)
class _Track:
    """One engine's rows by time, each name's last value carried forward."""

    times: tuple[int, ...]
    rows: tuple[Values, ...]
    interval_ns: float

    def at(self, t_ns: int) -> Values | None:
        """Return what held at a time: no more than one interval before or after the samples."""
        index = bisect.bisect_right(self.times, t_ns) - 1
        if index < 0:
            return self.rows[0] if self.times[0] - t_ns <= self.interval_ns else None
        is_last = index == len(self.times) - 1
        if is_last and t_ns - self.times[-1] > self.interval_ns:
            return None
        return self.rows[index]


def queued(values: Values) -> float:
    """Return the requests that wait, in the scheduler or in front of it."""
    return values["waiting"] + values.get("front_waiting", 0.0)


def _track(samples: Sequence[EngineSample]) -> _Track | None:
    times: list[int] = []
    rows: list[Values] = []
    last: dict[str, float] = {}
    for t_ns, at_once in groupby(sorted(samples, key=_time), key=_time):
        last |= {name: value for _, _, name, value in at_once}
        if "waiting" in last and "running" in last:
            times.append(t_ns)
            rows.append(dict(last))
    if not rows:
        return None
    interval = statistics.median(b - a for a, b in pairwise(times)) if len(times) > 1 else 0.0
    return _Track(tuple(times), tuple(rows), interval)


def _grid(tracks: Sequence[_Track]) -> list[int]:
    """Return the times at which to look; engines sampled apart need no finer grid than their own.

    Points nearer than half the shortest interval are left out.
    """
    times = sorted({t for track in tracks for t in track.times})
    if len(tracks) < 2:
        return times
    least = min(track.interval_ns for track in tracks) / 2
    kept = times[:1]
    for t in times[1:]:
        if t - kept[-1] >= least or t == times[-1]:
            kept.append(t)
    return kept


@kept
def moments(samples: Sequence[EngineSample]) -> tuple[Moment, ...]:
    """Line up what all engines said; the order of the samples does not matter.

    A lone moment lasts for an instant.
    """
    by_engine: dict[str, list[EngineSample]] = {}
    for sample in samples:
        by_engine.setdefault(sample.engine, []).append(sample)
    found = {name: _track(rows) for name, rows in sorted(by_engine.items())}
    tracks = {name: track for name, track in found.items() if track is not None}
    grid = _grid(tuple(tracks.values()))
    ends = [*grid[1:], *grid[-1:]] if len(grid) > 1 else [t + INSTANT_NS for t in grid]
    if len(tracks) == 1:  # looked at where it was sampled
        ((name, track),) = tracks.items()
        said: Iterable[Mapping[str, Values]] = ({name: row} for row in track.rows)
    else:
        said = (
            {n: v for n, track in tracks.items() if (v := track.at(now)) is not None}
            for now in grid
        )
    return tuple(
        Moment(now, after - now, engines)
        for now, after, engines in zip(grid, ends, said, strict=True)
    )


def risen(samples: Sequence[EngineSample], name: str) -> float | None:
    """Return by how much a counter rose over all engines; None where it was never sampled."""
    by_engine: dict[str, list[EngineSample]] = {}
    for sample in samples:
        if sample.name == name:
            by_engine.setdefault(sample.engine, []).append(sample)
    if not by_engine:
        return None
    rows = (sorted(found, key=lambda s: s.t_ns) for found in by_engine.values())
    return sum(max(0.0, r[-1].value - r[0].value) for r in rows)


def clip(found: Sequence[Moment], start_ns: int, end_ns: int) -> tuple[Moment, ...]:
    """Return the moments inside a span, cut to it.

    The closing one is left out: how long it held nobody saw, and means weigh by time.
    """
    first = max(0, bisect.bisect_right(found, start_ns, key=_start) - 1)
    near = list(found[first : bisect.bisect_left(found, end_ns, key=_start)])
    for index in {0, len(near) - 1} if near else ():  # those between are whole
        start, duration, engines = near[index]
        end = min(start + duration, end_ns)
        start = max(start, start_ns)
        near[index] = Moment(start, end - start, engines)
    return tuple(m for m in near if m.duration_ns > 0)
