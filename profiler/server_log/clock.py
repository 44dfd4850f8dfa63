"""The time of log lines: stamps without year or zone, made into one clock that never goes back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from stallscope.profiler.calendar_days import days_since_1970
from stallscope.profiler.wall_clock import WallClock

_S = 1_000_000_000
_DAY = 86_400
_EPOCH = date(1970, 1, 1).toordinal()
_SET_BACK_S = 600  # processes write late by seconds; a clock that goes back further was set back
_NEW_YEAR_S = 180 * _DAY
_TIME = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)"
# vLLM: "INFO 02-28 21:48:18 "; SGLang: "[2025-09-03 18:33:18 TP0]", its bracket lost where the line
# was cut; TensorRT-LLM: "[04/28/2025-09:56:44]"; Triton: '"Timestamp":"12-18-2023 03:35:37"'.
LEVEL_NAMES = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LEVEL = rf"(?P<level>{'|'.join(LEVEL_NAMES)})"
_STAMPS = (
    re.compile(rf"{LEVEL} (?P<month>\d\d)-(?P<day>\d\d) {_TIME}"),
    re.compile(rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)[ T]{_TIME}"),
    re.compile(rf"\[(?P<month>\d\d)/(?P<day>\d\d)/(?P<year>\d{{4}})-{_TIME}\]"),
    re.compile(rf'"Timestamp":"(?P<month>\d\d)-(?P<day>\d\d)-(?P<year>\d{{4}}) {_TIME}'),
)
_UNIX = re.compile(r"\btimestamp=(\d{9,10})\b")  # llama.cpp's server until 2024
_ZONE = re.compile(r"(?:Z|([+-])(\d\d):(\d\d))$")
_WHERE = 400  # a stamp stands at the head of a line, behind the names of processes at most
_LAST_S = 200 * 365 * _DAY  # nothing runs as long, and its nanoseconds fit 64 bits
_NO_YEAR = 2001  # of stamps that state none; a leap day moves them to 2000


class Stamp(NamedTuple):
    """The seconds that a line's stamp names, on a calendar of its own where it has no year."""

    seconds: int
    has_year: bool
    has_zone: bool


def stamp_of(text: str) -> Stamp | None:
    """Return a line's stamp; None without one."""
    for pattern in _STAMPS:
        found = pattern.search(text, 0, _WHERE)
        if found is not None and (seconds := _seconds(found)) is not None:
            return Stamp(seconds, "year" in pattern.groupindex, has_zone=False)
    unix = _UNIX.search(text)
    return Stamp(int(unix.group(1)), True, True) if unix is not None else None


def utc_stamp(time: str) -> Stamp | None:
    """Return a time of RFC 3339 as UTC; None for what is none, or has no zone."""
    stamp, zone = stamp_of(time), _ZONE.search(time)
    if stamp is None or zone is None:
        return None
    ahead_s = int(zone[2]) * 3600 + int(zone[3]) * 60 if zone[1] else 0
    seconds = stamp.seconds + (ahead_s if zone[1] == "-" else -ahead_s)
    return Stamp(seconds, has_year=True, has_zone=True)


def _seconds(found: re.Match[str]) -> int | None:
    month, day, hours, minutes, seconds = map(int, found.group("month", "day", "h", "m", "s"))
    has_year = "year" in found.re.groupindex
    year = int(found["year"]) if has_year else _NO_YEAR
    if not has_year and (month, day) == (2, 29):
        month, day = 3, 1
    days = days_since_1970(year, month, day)
    if days is None or hours > 23 or minutes > 59 or seconds > 59:
        return None
    return days * _DAY + hours * 3600 + minutes * 60 + seconds


def _in_years_around(stamp: Stamp, other: Stamp) -> Iterator[int]:
    """Yield the seconds of a stamp's date and time in the other's year and those beside it."""
    days, rest = divmod(stamp.seconds, _DAY)
    day, year = _date_of(days), _date_of(other.seconds // _DAY).year
    for near in (year - 1, year, year + 1):
        found = days_since_1970(near, day.month, day.day)
        if found is None:  # a leap day, in a year without one
            found = days_since_1970(near, 3, 1)
        if found is not None:
            yield found * _DAY + rest


def _date_of(days: int) -> date:
    return date.fromordinal(days + _EPOCH)


class LogClock:
    """Nanoseconds since the first stamp, never falling.

    A stamp half a year before the last one is of the next year. One that lies back by up to ten
    minutes was written late, and holds the time where it is; further back the clock was set back or
    another log was appended, and time goes on from where it was. Where libraries write the year and
    the engine does not, a year says which one it is and moves nothing.
    """

    def __init__(self) -> None:
        self._origin: Stamp | None = None
        self._dated_s: int | None = None  # the first stamp, where another one tells its year
        self._was_set_back = False
        self._shift = 0
        self._reached = 0

    def tell(self, stamp: Stamp | None) -> int:
        """Return the time of a line by its stamp; without one, that of the line before."""
        if stamp is None:
            return self._reached * _S
        if self._origin is None:
            self._origin = stamp
        now = self._on_calendar(stamp, self._origin) - self._origin.seconds + self._shift
        if now < self._reached - _NEW_YEAR_S:
            self._shift += 365 * _DAY
            now += 365 * _DAY
        if now < self._reached - _SET_BACK_S:
            self._shift += self._reached - now
            now, self._was_set_back = self._reached, True
        if stamp.has_year and not self._origin.has_year and self._dated_s is None:
            self._dated_s = stamp.seconds - now
        self._reached = max(self._reached, min(now, _LAST_S))
        return self._reached * _S

    def _on_calendar(self, stamp: Stamp, origin: Stamp) -> int:
        """Return a stamp's seconds in the first one's year, where only one of the two states it."""
        if stamp.has_year == origin.has_year:
            return stamp.seconds
        expected = origin.seconds + self._reached - self._shift
        return min(_in_years_around(stamp, origin), key=lambda seconds: abs(seconds - expected))

    def wall(self) -> WallClock | None:
        """Return the wall's time at time 0; None without a stamp, and where it was set back."""
        if self._origin is None or self._was_set_back:
            return None
        seconds, has_year, has_zone = self._origin
        if self._dated_s is not None:
            seconds, has_year = self._dated_s, True
        return WallClock(seconds * _S, has_zone=has_zone, has_year=has_year, error_ns=_S)
