"""Which of SGLang's processes wrote a line: each of its schedulers has a log prefix.

"[2026-03-17 17:35:07 DP9 PP0 ATTN_CP0 TP9 EP9] …", each part only where there are several
(run_scheduler_process in managers/scheduler.py). With DP attention, ranks of data are ranks of
tensors too: DP9 is TP9.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

_PREFIX = re.compile(r"(?<![A-Za-z0-9_])((?:[A-Z_]{2,12}\d{1,4}[ _]?){1,6})\]")
_PART = re.compile(r"_?([A-Z][A-Z_]{0,10}[A-Z])(\d{1,4})")
_WHERE = 160  # what collectors put before a line stands in front of the prefix
_T = TypeVar("_T")


class Writer(NamedTuple):
    """A process: its data-parallel rank, and its place among those that run the same requests."""

    engine: str
    place: tuple[int, ...]


def writer_of(text: str) -> Writer:
    """Return the process that wrote a line; engine "0" where it names no rank of data."""
    found = _PREFIX.search(text, 0, _WHERE)
    ranks = {} if found is None else {name: int(rank) for name, rank in _PART.findall(found[1])}
    engine = str(ranks.pop("DP", 0))
    return Writer(engine, tuple(ranks.get(name, 0) for name in ("PP", "ATTN_CP", "CP", "TP")))


def of_first_writers(found: Iterable[tuple[Writer, _T]]) -> list[_T]:
    """Keep what the first process of each engine wrote: the others say the same again."""
    rows = list(found)
    first: dict[str, tuple[int, ...]] = {}
    for (engine, place), _ in rows:
        first[engine] = min(first.get(engine, place), place)
    return [row for (engine, place), row in rows if place == first[engine]]
