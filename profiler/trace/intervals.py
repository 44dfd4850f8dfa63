"""Arithmetic on sets of half-open time intervals [start, end), as sorted arrays.

A `Union` holds disjoint intervals in order; every function that takes or returns one keeps it so.
Intervals of no length hold no time and vanish; one that ends before it starts is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stallscope.profiler.trace.timeline import UNKNOWN, Ints

RUN = 1 << 18  # rows: 2 MiB of integers


@dataclass(frozen=True, slots=True)
class Union:
    """Disjoint intervals in order of time, nanoseconds."""

    start_ns: Ints
    end_ns: Ints

    @property
    def total_ns(self) -> int:
        return int((self.end_ns - self.start_ns).sum())

    def __len__(self) -> int:
        return len(self.start_ns)


def union(start_ns: Ints, end_ns: Ints) -> Union:
    """Merge intervals in any order; those that touch become one. ValueError on a negative one."""
    if np.any(end_ns < start_ns):
        raise ValueError("an interval ends before it starts")
    if np.any(start_ns[1:] < start_ns[:-1]):
        order = np.argsort(start_ns, kind="stable")
        start_ns, end_ns = start_ns[order], end_ns[order]
    return union_in_order(start_ns, end_ns)[0]


def slices(count: int) -> Iterator[slice]:
    """Cut so many rows into runs that fit the caches: what is computed on them stays small."""
    return (slice(first, first + RUN) for first in range(0, count, RUN))


def union_in_order(start_ns: Ints, end_ns: Ints) -> tuple[Union, Ints | slice]:
    """Merge intervals in order of start; also return the place at which each merged one begins."""
    held = end_ns > start_ns
    if held.all() and np.all(start_ns[1:] > end_ns[:-1]):  # as on a single stream
        return Union(start_ns, end_ns), slice(None)
    kept = None if held.all() else np.flatnonzero(held)
    if kept is not None:
        start_ns, end_ns = start_ns[kept], end_ns[kept]
    if not len(start_ns):
        return Union(start_ns, end_ns), np.empty(0, dtype=np.int64)
    reached = np.maximum.accumulate(end_ns)
    opens = np.empty(len(start_ns), dtype=bool)
    opens[0] = True
    np.greater(start_ns[1:], reached[:-1], out=opens[1:])
    first = np.flatnonzero(opens)
    last = np.append(first[1:] - 1, len(start_ns) - 1)
    return Union(start_ns[first], reached[last]), first if kept is None else kept[first]


def fresh_ns(start_ns: Ints, end_ns: Ints) -> Ints:
    """Return how much each interval adds to the union of those before it, in order of start.

    The sum is the union's total; intervals that run at once are counted for the first of them.
    """
    if np.all(start_ns[1:] >= end_ns[:-1]):
        return end_ns - start_ns
    reached = np.maximum.accumulate(end_ns)
    added: Ints = end_ns - start_ns
    np.minimum(added[1:], end_ns[1:] - reached[:-1], out=added[1:])
    np.maximum(added, 0, out=added)
    return added


def within(busy: Union, start_ns: int, end_ns: int) -> Union:
    """Cut a union to a window."""
    first = int(np.searchsorted(busy.end_ns, start_ns, side="right"))
    last = int(np.searchsorted(busy.start_ns, end_ns, side="left"))
    if last <= first or end_ns <= start_ns:
        return Union(busy.start_ns[:0], busy.end_ns[:0])
    starts, ends = busy.start_ns[first:last], busy.end_ns[first:last]
    if starts[0] < start_ns:  # only the first can begin before, and only the last end after
        starts = starts.copy()
        starts[0] = start_ns
    if ends[-1] > end_ns:
        ends = ends.copy()
        ends[-1] = end_ns
    return Union(starts, ends)


def gaps(busy: Union, start_ns: int, end_ns: int) -> Union:
    """Return what a window holds outside the union."""
    seen = within(busy, start_ns, end_ns)
    starts = np.concatenate(([start_ns], seen.end_ns))
    ends = np.concatenate((seen.start_ns, [max(start_ns, end_ns)]))
    held = ends > starts
    return Union(starts[held], ends[held])


def time_before(busy: Union, t_ns: Ints) -> Ints:
    """Return for each moment how much of the union lies before it, nanoseconds."""
    totals = np.zeros(len(busy) + 1, dtype=np.int64)
    np.subtract(busy.end_ns, busy.start_ns, out=totals[1:])
    np.cumsum(totals, out=totals)
    place = np.searchsorted(busy.start_ns, t_ns, side="right")
    inside = np.zeros(len(t_ns), dtype=np.int64)
    some = place > 0
    passed = place[some] - 1
    inside[some] = np.maximum(0, busy.end_ns[passed] - t_ns[some])
    return np.asarray(totals[place] - inside, dtype=np.int64)


def covered_ns(busy: Union, start_ns: Ints, end_ns: Ints) -> Ints:
    """Return for each window how much of it the union covers, nanoseconds."""
    before = time_before(busy, np.concatenate((start_ns, end_ns)))
    return before[len(start_ns) :] - before[: len(start_ns)]


def overlap_ns(a: Union, b: Union) -> int:
    """Return how much time lies in both."""
    few, many = (a, b) if len(a) < len(b) else (b, a)
    return int(covered_ns(many, few.start_ns, few.end_ns).sum())


def _pairs(few: Union, many: Union) -> tuple[Ints, Ints]:
    """Return the places of all pairs of intervals that share time, in order."""
    first = np.searchsorted(many.end_ns, few.start_ns, side="right")
    count = np.searchsorted(many.start_ns, few.end_ns, side="left") - first
    count = np.maximum(count, 0)
    offsets = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(np.arange(len(few)), count), np.repeat(first, count) + offsets


def intersection(a: Union, b: Union) -> Union:
    """Return the time that lies in both."""
    few, many = (a, b) if len(a) < len(b) else (b, a)
    one, other = _pairs(few, many)
    return Union(
        np.maximum(few.start_ns[one], many.start_ns[other]),
        np.minimum(few.end_ns[one], many.end_ns[other]),
    )


def difference(a: Union, b: Union) -> Union:
    """Return the time that lies in `a` and not in `b`."""
    if not len(a) or not len(b):
        return a
    first, last = int(a.start_ns[0]), int(a.end_ns[-1])
    if len(a) < len(b):
        _, places = _pairs(a, b)
        places = places[np.diff(places, prepend=UNKNOWN) > 0]
        b = Union(b.start_ns[places], b.end_ns[places])
    return intersection(a, gaps(b, first, last))
