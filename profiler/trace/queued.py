"""Idle time of a device that already had work queued: it is not the host that kept it waiting."""

from __future__ import annotations

import numpy as np

from stallscope.profiler.trace.intervals import Union, slices
from stallscope.profiler.trace.timeline import UNKNOWN, Calls, Ints


def split_gaps(busy: Union, launch_ns: Ints, calls: Calls) -> tuple[Union, Union]:
    """Split a device's gaps at the moment when the work that ends each was launched.

    `launch_ns` belongs to the row that begins each interval of `busy`. Returned are the parts
    before (what is waited for is the host) and after (the device has work queued). The launch
    counts from the end of its call, and where no call was traced it is not known: then all is
    before. What lies after is the device's own latency, a dependency between streams or kernels of
    a graph, or work that the trace does not show: one that begins in the middle of things starts
    with a gap in which the queue from before was worked off.
    """
    gap_starts, gap_ends, launches = busy.end_ns[:-1], busy.start_ns[1:], launch_ns[1:]
    start, end = _in_order(calls)
    waiting: list[Union] = []
    queued: list[Union] = []
    for run in slices(len(gap_starts)):
        gap_start, gap_end = gap_starts[run], gap_ends[run]
        returned = _returned(launches[run], start, end)
        begins = np.where(returned == UNKNOWN, gap_end, np.clip(returned, gap_start, gap_end))
        before, after = begins > gap_start, gap_end > begins
        waiting.append(Union(gap_start[before], begins[before]))
        queued.append(Union(begins[after], gap_end[after]))
    return _joined(waiting), _joined(queued)


def _in_order(calls: Calls) -> tuple[Ints, Ints]:
    start, end = calls.start_ns, calls.end_ns
    if np.any(start[1:] < start[:-1]):
        order = np.argsort(start, kind="stable")
        return start[order], end[order]
    return start, end


def _returned(launch_ns: Ints, start: Ints, end: Ints) -> Ints:
    """Return when the calls that began at these moments ended, −1 where no such call is known."""
    if not len(start):
        return np.full(len(launch_ns), UNKNOWN, dtype=np.int64)
    place = np.minimum(np.searchsorted(start, launch_ns, side="left"), len(start) - 1)
    return np.where(start[place] == launch_ns, end[place], UNKNOWN)


def _joined(parts: list[Union]) -> Union:
    none = np.empty(0, dtype=np.int64)
    return Union(
        np.concatenate([none, *(part.start_ns for part in parts)]),
        np.concatenate([none, *(part.end_ns for part in parts)]),
    )
