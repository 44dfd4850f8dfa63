"""What the host did while a device had nothing to do."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stallscope.profiler.trace.intervals import Union, difference, slices, union
from stallscope.profiler.trace.timeline import CallKind, Calls, Ints, Ranges, SmallInts, Trace

# In order of precedence: what is under way on any launching thread explains a gap before what comes
# later in this list. A launch under way is what ends the gap; an operator of the framework encloses
# the calls it makes, so it comes after them.
CAUSES = ("launch", "copy", "alloc", "capture", "sync", "wait", "operator", "unseen")
_KINDS = {
    "launch": (CallKind.LAUNCH, CallKind.GRAPH_LAUNCH),
    "copy": (CallKind.COPY,),
    "alloc": (CallKind.ALLOC,),
    "capture": (CallKind.CAPTURE,),
    "sync": (CallKind.SYNC,),
}


def gap_causes(trace: Trace, idle: Union, threads: SmallInts) -> Mapping[str, int]:
    """Share out the time that a device waited for its host over CAUSES; nanoseconds, all of it.

    `threads` are those that launch onto the device: what others do does not keep it waiting.
    """
    causes: dict[str, int] = {}
    calls = _near(trace.calls, idle, threads)
    for cause, kinds in _KINDS.items():
        of_kind = calls[np.isin(trace.calls.kind[calls], kinds)]
        idle = _take(causes, cause, trace.calls, of_kind, idle)
    idle = _take(causes, "wait", trace.waits, _near(trace.waits, idle, threads), idle)
    operators = _near(trace.operators, idle, threads)
    idle = _take(causes, "operator", trace.operators, operators, idle)
    causes["unseen"] = idle.total_ns
    return causes


def _near(rows: Calls | Ranges, idle: Union, threads: SmallInts) -> Ints:
    """Return the places of those rows of the threads that share time with some of the idle."""
    found = [np.empty(0, dtype=np.int64)]
    for run in slices(len(rows)):
        begun = np.searchsorted(idle.start_ns, rows.end_ns[run], side="left")
        ended = np.searchsorted(idle.end_ns, rows.start_ns[run], side="right")
        near = np.flatnonzero(begun > ended) + run.start
        found.append(near[np.isin(rows.thread[near], threads)])
    return np.concatenate(found)


def _take(
    causes: dict[str, int], cause: str, rows: Calls | Ranges, chosen: Ints, idle: Union
) -> Union:
    """Count what the chosen rows explain of the idle time; return what is left of it."""
    left = difference(idle, union(rows.start_ns[chosen], rows.end_ns[chosen]))
    causes[cause] = idle.total_ns - left.total_ns
    return left
