"""Which call launched what ran on a device: they share a correlation id within a process."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stallscope.profiler.trace.timeline import UNKNOWN, SmallInts

Ids = NDArray[np.uint32]  # correlation ids; 0 is none

_SLACK = 16  # a table of all ids between the least and the greatest may be so many times too large
_ROWS_AT_ONCE = 1_000_000  # so that what is temporary stays small


def match(ids: Ids, called: Ids) -> SmallInts:
    """Return for each id the first row of `called` that has it, −1 where none does.

    CUPTI counts correlation ids up, so a table from id to row is small and is filled in one pass;
    ids that lie too far apart for that are sorted.
    """
    if not len(called):
        return np.full(len(ids), UNKNOWN, dtype=np.int32)
    least, greatest = int(called.min()), int(called.max())
    if greatest - least < _SLACK * len(called) + _ROWS_AT_ONCE:
        return _by_table(ids, called, least, greatest)
    return _by_sorting(ids, called)


def _by_table(ids: Ids, called: Ids, least: int, greatest: int) -> SmallInts:
    table = np.full(greatest - least + 1, UNKNOWN, dtype=np.int32)
    for end in range(len(called), 0, -_ROWS_AT_ONCE):  # backwards: of several rows the first stays
        start = max(0, end - _ROWS_AT_ONCE)
        places = called[start:end][::-1].astype(np.int64) - least
        table[places] = np.arange(end - 1, start - 1, -1, dtype=np.int32)
    rows = np.empty(len(ids), dtype=np.int32)
    for start in range(0, len(ids), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        places = ids[part].astype(np.int64) - least
        inside = (places >= 0) & (places < len(table))
        places[~inside] = 0
        rows[part] = np.where(inside & (ids[part] != 0), table[places], UNKNOWN)
    return rows


def _by_sorting(ids: Ids, called: Ids) -> SmallInts:
    order = np.argsort(called, kind="stable")
    ascending = called[order]
    place = np.minimum(np.searchsorted(ascending, ids), len(called) - 1)
    found = (ascending[place] == ids) & (ids != 0)
    return np.where(found, order[place], UNKNOWN).astype(np.int32)


def match_processes(ids: Ids, process: SmallInts, called: Ids, calling: SmallInts) -> SmallInts:
    """Do as `match`, within each process; both columns of processes use the same numbers.

    A process that is not known (−1) matches none.
    """
    rows = np.full(len(ids), UNKNOWN, dtype=np.int32)
    for one in np.unique(calling[calling != UNKNOWN]):
        mine, theirs = np.flatnonzero(process == one), np.flatnonzero(calling == one)
        found = match(ids[mine], called[theirs])
        rows[mine] = np.where(found == UNKNOWN, UNKNOWN, theirs[found])
    return rows
