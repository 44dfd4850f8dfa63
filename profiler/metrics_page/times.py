"""The times of pages in a file: since 1970 as they say, made into a clock that never goes back."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from stallscope.profiler.metrics_page.scrape import Scrape

_S = 1_000_000_000
_LAST_NS = 200 * 365 * 86_400 * _S  # nothing runs as long, and it fits 64 bits


def placed(scrapes: Iterable[Scrape]) -> tuple[bool, list[Scrape]]:
    """Count times from the first page, and tell whether the pages have any.

    They are of the wall's clock, else those that the scrapes have. Where a clock was set back, time
    goes on by one usual interval. Pages without a time are set a second apart.
    """
    found = list(scrapes)
    told = [scrape.unix_ns for scrape in found if scrape.unix_ns is not None]
    if len(told) == len(found):
        return True, _at(found, _rising(told))
    found = [replace(scrape, unix_ns=None) for scrape in found]
    own = [scrape.t_ns for scrape in found]
    if len(set(own)) > 1:
        return True, _at(found, _rising(own))
    return False, _at(found, [i * _S for i in range(len(found))])


def _at(scrapes: Sequence[Scrape], times: Sequence[int]) -> list[Scrape]:
    return [replace(s, t_ns=t) for s, t in zip(scrapes, times, strict=True)]


def jumps_back(scrapes: Sequence[Scrape]) -> bool:
    """Tell whether a page says it is older than the one before it."""
    told = [scrape.unix_ns for scrape in scrapes if scrape.unix_ns is not None]
    return any(later < earlier for earlier, later in pairwise(told))


def _rising(told: Sequence[int]) -> list[int]:
    steps = [b - a for a, b in pairwise(told)]
    usual = round(statistics.median([s for s in steps if s > 0] or [_S]))
    now, placed_at = 0, [0] if told else []
    for step in steps:
        now = min(_LAST_NS, now + (step if step >= 0 else usual))
        placed_at.append(now)
    return placed_at
