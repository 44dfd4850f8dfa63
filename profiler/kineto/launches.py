"""Which call launched a kernel or a copy: the one with its correlation id."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stallscope.profiler.trace.timeline import UNKNOWN, Bytes, CallKind, Ints, SmallInts

_LAUNCHING = (CallKind.LAUNCH, CallKind.GRAPH_LAUNCH, CallKind.COPY)


@dataclass(frozen=True, slots=True)
class Launches:
    """For each row its launch call's start, thread and kind: −1 and OTHER where none is known."""

    start_ns: Ints
    thread: SmallInts
    kind: Bytes


def launches_of(
    wanted: Ints, correlation: Ints, start_ns: Ints, thread: SmallInts, kind: Bytes
) -> Launches:
    """Join rows of correlation id `wanted` to calls; of several calls the one that launches first.

    Ids below 1 stand for "none". Many rows may share a call: those of a graph do.
    """
    order = np.lexsort((start_ns, ~np.isin(kind, _LAUNCHING), correlation))
    ids = correlation[order]
    place = np.searchsorted(ids, wanted, side="left")
    is_known = (wanted > 0) & (place < len(ids))
    is_known[is_known] = ids[place[is_known]] == wanted[is_known]
    found = order[place[is_known]]
    launch_ns = np.full(len(wanted), UNKNOWN, dtype=np.int64)
    threads = np.full(len(wanted), UNKNOWN, dtype=np.int32)
    kinds = np.zeros(len(wanted), dtype=np.uint8)
    launch_ns[is_known] = start_ns[found]
    threads[is_known] = thread[found]
    kinds[is_known] = kind[found]
    return Launches(launch_ns, threads, kinds)
