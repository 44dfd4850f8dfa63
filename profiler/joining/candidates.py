"""Offsets that two wall clocks may have: zones and years that a source does not state."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from stallscope.profiler.wall_clock import WallClock

_S = 1_000_000_000
_MINUTE_NS = 60 * _S
_HOUR_NS = 60 * _MINUTE_NS
# Zones in use, daylight saving included, in minutes east of UTC.
_ODD = (-570, -210, -150, 210, 270, 330, 345, 390, 525, 570, 630, 765, 825)
ZONES_NS = tuple(m * _MINUTE_NS for m in sorted({*(h * 60 for h in range(-12, 15)), *_ODD}))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Candidate(NamedTuple):
    """What is added to the second source's times, and the part of it that zones explain."""

    offset_ns: int
    zone_ns: int


def candidates_of(first: WallClock, second: WallClock) -> tuple[Candidate, ...]:
    """Return the offsets that two wall clocks may have, the plainest first.

    One where both tell zone and year; else one for each zone in use, in the years around.
    """
    plain = {b - a for a in _years(first, second) for b in _years(second, first)}
    return tuple(
        Candidate(offset + zone, zone)
        for zone in _zones(first, second)
        for offset in sorted(plain, key=abs)
    )


def _zones(first: WallClock, second: WallClock) -> list[int]:
    """Return what zones may add: a clock east of another shows more."""
    if first.has_zone and second.has_zone:
        return [0]
    east = set() if first.has_zone else set(ZONES_NS)
    east |= set() if second.has_zone else {-zone for zone in ZONES_NS}
    return sorted(east, key=_plainness)


def _plainness(offset_ns: int) -> tuple[bool, bool, int, bool]:
    """Order whole hours before halves before quarters, small before large."""
    is_odd, is_quarter = offset_ns % _HOUR_NS != 0, offset_ns % (30 * _MINUTE_NS) != 0
    return is_odd, is_quarter, abs(offset_ns), offset_ns > 0


def _years(clock: WallClock, other: WallClock) -> Iterator[int]:
    """Yield the clock's time 0 in the years around the other's; as it is where it states one."""
    if clock.has_year:
        yield clock.zero_ns
        return
    at, year = _date(clock.zero_ns), _date(other.zero_ns).year
    for candidate in (year - 1, year, year + 1):
        for date in _dates(at, candidate):
            yield (date - _EPOCH) // timedelta(microseconds=1) * 1_000 + clock.zero_ns % 1_000


def _dates(at: datetime, year: int) -> Iterator[datetime]:
    """Yield a date in another year; the first of March may stand for a leap day."""
    yield at.replace(year=year)
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if is_leap and (at.month, at.day) == (3, 1):
        yield at.replace(year=year, month=2, day=29)


def _date(ns: int) -> datetime:
    return _EPOCH + timedelta(microseconds=ns // 1_000)
