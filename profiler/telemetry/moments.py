"""The times that nvidia-smi and DCGM print, as nanoseconds.

nvidia-smi prints local time and no zone: its nanoseconds count from 1970 on the clock on the wall
where it ran. Only differences, and comparisons with clocks of the same zone, mean something.
"""

from __future__ import annotations

import calendar
import re
from functools import lru_cache

from stallscope.profiler.calendar_days import days_since_1970

_YEAR_FIRST = re.compile(
    r"(\d{4})[/-](\d{1,2})[/-](\d{1,2})[ T]+(\d{1,2}):(\d{2}):(\d{2})(?:[.,](\d{1,9}))?Z?"
)
_DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4}) +(\d{1,2}):(\d{2}):(\d{2})(?:[.,](\d+))?")
_CTIME = re.compile(r"(?:\w{2,3}\.? )?(\w{3}) +(\d{1,2}) +(\d{1,2}):(\d{2}):(\d{2}) (\d{4})")
_DIGITS = re.compile(r"(\d{8}) (\d{2}):(\d{2}):(\d{2})")  # dmon -o DT
_SECONDS = len("2024/01/16 14:44:16")  # behind it a form with fractions has them
_MOST_LONG = 64
_UNIX = re.compile(r"1\d{9}(?:\.\d{1,9})?")
_MONTHS = {name.lower(): i for i, name in enumerate(calendar.month_abbr) if name}


def wall_ns(text: str) -> int | None:
    """Return a printed time as nanoseconds; None where it is none."""
    if len(text) > _MOST_LONG:
        return None
    whole, dot, part = text.partition(".")
    if dot and len(whole) == _SECONDS and len(part) <= 9 and part.isdecimal():
        seconds_ns = _known_ns(whole)
        return None if seconds_ns is None else seconds_ns + _part_ns(part)
    return _known_ns(text)


@lru_cache(maxsize=1024)  # several GPUs in the same second
def _known_ns(text: str) -> int | None:
    text = text.strip()
    if found := _YEAR_FIRST.fullmatch(text):
        return _ns(*(int(part) for part in found.groups()[:6]), fraction=found[7])
    if found := _CTIME.fullmatch(text):
        month = _MONTHS.get(found[1].lower())
        hour, minute, second = int(found[3]), int(found[4]), int(found[5])
        return (
            None
            if month is None
            else _ns(int(found[6]), month, int(found[2]), hour, minute, second)
        )
    if found := _DIGITS.fullmatch(text):
        day = found[1]
        date = int(day[:4]), int(day[4:6]), int(day[6:])
        return _ns(*date, int(found[2]), int(found[3]), int(found[4]))
    if found := _DAY_FIRST.fullmatch(text):
        date = int(found[3]), int(found[2]), int(found[1])
        return _ns(*date, int(found[4]), int(found[5]), int(found[6]), fraction=found[7])
    if _UNIX.fullmatch(text):
        whole, _, part = text.partition(".")
        return int(whole) * 1_000_000_000 + _part_ns(part)
    return None


def _part_ns(digits: str | None) -> int:
    return int((digits or "0")[:9].ljust(9, "0"))


def _ns(
    year: int,
    month: int,
    day: int,
    hour: int,
    minute: int,
    second: int,
    *,
    fraction: str | None = None,
) -> int | None:
    is_time = hour < 24 and minute < 60 and second < 61
    days = days_since_1970(year, month, day)
    if not is_time or days is None:
        return None
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    return seconds * 1_000_000_000 + _part_ns(fraction)
