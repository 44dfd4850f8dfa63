"""What the host did while a device had nothing to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from stallscope.profiler.trace.intervals import Union, overlap_ns, union
from stallscope.profiler.trace.timeline import CallKind, Calls, Ints, Ranges, SmallInts, Trace

# In order of precedence: what is under way on any launching thread explains a gap before what comes
# later in this list. A launch under way is what ends the gap; an operator of the framework encloses
# the calls it makes, so it comes after them.
CAUSES = ("queued", "launch", "copy", "alloc", "capture", "sync", "wait", "operator", "unseen")
_KINDS = {
    "launch": (CallKind.LAUNCH, CallKind.GRAPH_LAUNCH),
    "copy": (CallKind.COPY,),
    "alloc": (CallKind.ALLOC,),
    "capture": (CallKind.CAPTURE,),
    "sync": (CallKind.SYNC,),
}


def gap_causes(trace: Trace, idle: Union, queued: Union, threads: SmallInts) -> Mapping[str, int]:
    """Share out the idle time of a device over CAUSES, nanoseconds each; they sum to its total.

    While the next work is `queued` it is not the host that keeps the device waiting. `threads` are
    those that launch onto the device: what others do does not keep it waiting.
    """
    starts: Ints = np.empty(0, dtype=np.int64)
    ends = starts
    explained_ns = 0
    causes: dict[str, int] = {}
    for cause, (more_starts, more_ends) in (
        ("queued", (queued.start_ns, queued.end_ns)),
        *_activities(trace, threads),
    ):
        causes[cause] = 0
        if len(more_starts):
            starts, ends = np.concatenate((starts, more_starts)), np.concatenate((ends, more_ends))
            merged = union(starts, ends)
            starts, ends = merged.start_ns, merged.end_ns
            now_ns = overlap_ns(merged, idle)
            causes[cause], explained_ns = now_ns - explained_ns, now_ns
    causes["unseen"] = idle.total_ns - explained_ns
    return causes


def _activities(trace: Trace, threads: SmallInts) -> Iterator[tuple[str, tuple[Ints, Ints]]]:
    for cause, kinds in _KINDS.items():
        yield cause, _on(trace.calls, threads, np.isin(trace.calls.kind, kinds, kind="table"))
    yield "wait", _on(trace.waits, threads)
    yield "operator", _on(trace.operators, threads)


def _on(
    rows: Calls | Ranges, threads: SmallInts, chosen: np.ndarray | None = None
) -> tuple[Ints, Ints]:
    here = np.isin(rows.thread, threads, kind="table")
    here = here if chosen is None else here & chosen
    return rows.start_ns[here], rows.end_ns[here]
