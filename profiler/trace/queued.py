"""Idle time of a device that already had work queued: it is not the host that kept it waiting."""

from __future__ import annotations

import numpy as np

from stallscope.profiler.trace.intervals import Union
from stallscope.profiler.trace.timeline import UNKNOWN, Calls, Ints


def queued(busy: Union, start_ns: Ints, launch_ns: Ints, calls: Calls) -> Union:
    """Return the parts of a device's gaps in which the work that ends the gap was launched already.

    `start_ns` (in order) and `launch_ns` are of the device's rows. The launch counts from the end
    of its call, and where no call was traced it is not known. What remains of such a gap is the
    device's own latency, a dependency between streams or kernels of a graph, or work that the trace
    does not show: one that begins in the middle of things starts with a gap in which the queue
    from before was worked off.
    """
    gap_start, gap_end = busy.end_ns[:-1], busy.start_ns[1:]
    if not len(gap_start):
        return Union(gap_start, gap_end)
    launched = launch_ns[np.searchsorted(start_ns, gap_end, side="left")]
    returned = _returned(launched, calls)
    begins = np.maximum(gap_start, returned)
    held = (returned != UNKNOWN) & (begins < gap_end)
    return Union(begins[held], gap_end[held])


def _returned(launch_ns: Ints, calls: Calls) -> Ints:
    """Return when the calls that began at these moments ended, −1 where no such call is known."""
    if not len(calls):
        return np.full(len(launch_ns), UNKNOWN, dtype=np.int64)
    start, end = calls.start_ns, calls.end_ns
    if np.any(start[1:] < start[:-1]):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    place = np.minimum(np.searchsorted(start, launch_ns, side="left"), len(start) - 1)
    return np.where(start[place] == launch_ns, end[place], UNKNOWN)
