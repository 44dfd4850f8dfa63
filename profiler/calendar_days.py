"""Days of the calendar by number."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

_EPOCH = date(1970, 1, 1).toordinal()
_YEARS = range(1970, 2200)


@lru_cache(maxsize=64)  # a file is of few days
def days_since_1970(year: int, month: int, day: int) -> int | None:
    """Count days; None where the calendar has no such day, or it is far from ours."""
    if year not in _YEARS:
        return None
    try:
        return date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None
