"""What the host did while a device had nothing to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from stallscope.profiler.trace.intervals import Union, difference, union
from stallscope.profiler.trace.timeline import CallKind, Calls, Ranges, SmallInts, Trace

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
    left = difference(idle, queued)
    causes = {"queued": idle.total_ns - left.total_ns}
    for cause, active in _activities(trace, threads):
        rest = difference(left, active) if len(left) else left
        causes[cause] = left.total_ns - rest.total_ns
        left = rest
    causes["unseen"] = left.total_ns
    return causes


def _activities(trace: Trace, threads: SmallInts) -> Iterator[tuple[str, Union]]:
    for cause, kinds in _KINDS.items():
        of_kind = np.isin(trace.calls.kind, kinds, kind="table")
        yield cause, _on(trace.calls, threads, of_kind)
    yield "wait", _on(trace.waits, threads)
    yield "operator", _on(trace.operators, threads)


def _on(rows: Calls | Ranges, threads: SmallInts, chosen: np.ndarray | None = None) -> Union:
    here = np.isin(rows.thread, threads, kind="table")
    here = here if chosen is None else here & chosen
    return union(rows.start_ns[here], rows.end_ns[here])
