"""The columns of a Trace from the gathered rows, launch calls joined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stallscope.profiler.kineto.columns import Index
from stallscope.profiler.kineto.launches import Launches, launches_of
from stallscope.profiler.kineto.names import call_kind, copy_kind, short_name
from stallscope.profiler.kineto.rows import DeviceRows, HostRows, Rows
from stallscope.profiler.trace.far_times import Near, near_times
from stallscope.profiler.trace.timeline import (
    UNKNOWN,
    CallKind,
    Calls,
    Copies,
    Ints,
    Kernels,
    Ranges,
)


@dataclass(frozen=True, slots=True)
class Tables:
    """A trace's columns and the names they index."""

    names: tuple[str, ...]
    texts: tuple[str, ...]
    kernels: Kernels
    copies: Copies
    calls: Calls
    marks: Ranges
    operators: Ranges
    near: Near  # what was left out of them


def tables_of(rows: Rows) -> Tables:
    """Put the rows into a trace's columns."""
    shortened = Index()
    to_short = [shortened[short_name(str(name))] for name in rows.kernels.names]
    calls = _calls(rows)
    correlation, start_ns = rows.calls.correlation.whole(), calls.start_ns
    kernel_ids, copy_ids = rows.kernels.correlation.whole(), rows.copies.correlation.whole()
    launches = launches_of(
        np.concatenate((kernel_ids, copy_ids)), correlation, start_ns, calls.thread, calls.kind
    )
    near = near_times(
        _kernels(rows.kernels, np.array(to_short, dtype=np.int32), launches),
        _copies(rows.copies, launches, len(kernel_ids)),
        calls,
        (_ranges(rows.marks), _ranges(rows.operators)),
    )
    marks, operators = near.ranges
    return Tables(
        names=tuple(str(name) for name in shortened),
        texts=tuple(str(name) for name in rows.host_names),
        kernels=near.kernels,
        copies=near.copies,
        calls=near.calls,
        marks=marks,
        operators=operators,
        near=near,
    )


def _calls(rows: Rows) -> Calls:
    called = rows.calls.name.whole()
    kinds = np.zeros(len(rows.host_names), dtype=np.uint8)
    for name, number in rows.host_names.items():
        kinds[number] = call_kind(str(name))
    return Calls(
        rows.calls.times.start.whole(),
        rows.calls.times.end.whole(),
        rows.calls.thread.whole().astype(np.int32),
        kinds[called],
    )


def _kernels(rows: DeviceRows, to_short: np.ndarray, launches: Launches) -> Kernels:
    count = len(rows.name.whole())
    graph = rows.graph.whole()
    by_graph = launches.kind[:count] == CallKind.GRAPH_LAUNCH
    return Kernels(
        start_ns=rows.times.start.whole(),
        end_ns=rows.times.end.whole(),
        device=rows.device.whole().astype(np.int32),
        stream=_small(rows.stream.whole()),
        name=to_short[rows.name.whole()],
        launch_ns=launches.start_ns[:count],
        thread=launches.thread[:count],
        graph=np.where(by_graph & (graph == UNKNOWN), 0, graph),
    )


def _copies(rows: DeviceRows, launches: Launches, before: int) -> Copies:
    named = rows.name.whole()
    kinds = np.array([copy_kind(str(name)) for name in rows.names], dtype=np.uint8).reshape(-1, 2)
    return Copies(
        start_ns=rows.times.start.whole(),
        end_ns=rows.times.end.whole(),
        device=rows.device.whole().astype(np.int32),
        stream=_small(rows.stream.whole()),
        kind=kinds[named, 0],
        bytes=rows.bytes.whole(),
        pageable=kinds[named, 1],
        launch_ns=launches.start_ns[before:],
        thread=launches.thread[before:],
    )


def _ranges(rows: HostRows) -> Ranges:
    start_ns = rows.times.start.whole()
    return Ranges(
        start_ns,
        rows.times.end.whole(),
        rows.thread.whole().astype(np.int32),
        rows.name.whole().astype(np.int32),
        np.full(len(start_ns), UNKNOWN, dtype=np.int64),
    )


def _small(values: Ints) -> np.ndarray:
    """Return stream ids as 32-bit integers; one that needs more is not known."""
    is_small = np.abs(values) < 1 << 31
    return np.where(is_small, values, UNKNOWN).astype(np.int32)
