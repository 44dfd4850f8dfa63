"""Times, spans and offsets in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from stallscope.profiler.wall_clock import WallClock

_S = 1_000_000_000


class Moments(NamedTuple):
    """What is compared between two sources."""

    one: str
    several: str
    come: str


WORK = Moments("begin or end of work", "begins and ends of work", "work begins and ends")
FLIGHT = Moments(
    "rise or fall of requests in flight",
    "rises and falls of requests in flight",
    "requests in flight rise and fall",
)


def apart(ns: int) -> str:
    """Say a length of time: "1 h", "5 h 30 min", "10 min 3 s", "0.4 s", "1 ms"."""
    seconds = abs(ns) / _S
    if 0 < seconds < 0.05:
        return f"{max(1, round(seconds * 1000))} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    days, rest = divmod(round(seconds), 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"), (rest, "s"))
    return " ".join(f"{value} {unit}" for value, unit in parts if value)


def span_words(span_ns: tuple[int, int], wall: WallClock | None) -> str:
    """Say from when to when a source lasts, on its own wall clock, and what that leaves open."""
    if wall is None:
        return f"lasts {apart(span_ns[1] - span_ns[0])} and tells no date"
    first, last = (_date(wall.zero_ns + t, wall) for t in span_ns)
    lacks = ["year"] * (not wall.has_year) + ["zone"] * (not wall.has_zone)
    stated = f"no {' and no '.join(lacks)} stated" if lacks else "UTC"
    return f"is from {first} to {last} ({stated})"


def _date(ns: int, wall: WallClock) -> str:
    form = "%Y-%m-%d %H:%M:%S" if wall.has_year else "%m-%d %H:%M:%S"
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ns // 1_000)).strftime(form)
