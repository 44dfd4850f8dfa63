"""Kernels, and graphs of kernels that were traced as one."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from stallscope.profiler.nsys.calls import Launches
from stallscope.profiler.nsys.database import Database
from stallscope.profiler.nsys.device_ids import DeviceIds
from stallscope.profiler.nsys.growing import Columns, Kind
from stallscope.profiler.nsys.kernel_names import short_kernel_name
from stallscope.profiler.nsys.page_rows import MISSING, Rare
from stallscope.profiler.nsys.sound_rows import sound
from stallscope.profiler.nsys.texts import distinct
from stallscope.profiler.nsys.timed_columns import ON_DEVICE, timed_columns
from stallscope.profiler.trace.timeline import UNKNOWN, Ints, Kernels, SmallInts, empty

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
GRAPH_TRACE = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
WHOLE_GRAPH = "CUDA graph, traced as a whole"
_GRAPH_SHIFT = 32  # a graph node's id holds its graph's in the upper half
_FIELDS = tuple(field.name for field in fields(Kernels))
_NO_NAME = "a kernel without a name"


@dataclass(frozen=True, slots=True)
class KernelRows:
    """Kernels and their names; `whole_graphs` of them are graphs, `damaged` rows were left out."""

    kernels: Kernels
    names: tuple[str, ...]
    whole_graphs: int = 0
    damaged: int = 0


def read_kernels(database: Database, launches: Launches, devices: DeviceIds) -> KernelRows:
    """Read the kernels, and where no graph's nodes were traced the graphs traced as one."""
    found = _kernels(database, launches, devices)
    if np.any(found.kernels.graph != UNKNOWN):
        return found
    columns = timed_columns(database, GRAPH_TRACE, {**ON_DEVICE, "graphId": "int64"})
    return _with_graphs(found, columns, launches, devices)


def _kernels(database: Database, launches: Launches, devices: DeviceIds) -> KernelRows:
    table = database.tables.get(KERNEL)
    name = None if table is None else table.first("demangledName", "shortName", "mangledName")
    kinds: dict[str, Kind] = {**ON_DEVICE, "graphNodeId": "rare", "graphId": "rare"}
    kinds |= {} if name is None else {name: "int32"}
    columns = timed_columns(database, KERNEL, kinds)
    if not columns:
        return KernelRows(empty(Kernels), ())
    columns, damaged = sound(columns)
    count = len(columns["start"])
    ids = columns.pop(name, None) if name is not None else None
    names, place = _names(database, np.full(count, UNKNOWN, np.int32) if ids is None else ids)
    graph = _graphs(columns, count)
    return KernelRows(_assembled(columns, place, graph, launches, devices), names, damaged=damaged)


def _assembled(
    columns: Columns, name: SmallInts, graph: Ints, launches: Launches, devices: DeviceIds
) -> Kernels:
    count = len(columns["start"])
    stream = columns.get("streamId")
    launch_ns, thread = launches.of(columns)
    return Kernels(
        columns["start"],
        columns["end"],
        devices.places(columns),
        np.broadcast_to(np.int32(UNKNOWN), count) if stream is None else stream,
        name,
        launch_ns,
        thread,
        graph,
    )


def _names(database: Database, ids: SmallInts) -> tuple[tuple[str, ...], SmallInts]:
    """Return the distinct names, and each row's place among them."""
    used, place = distinct(ids)
    texts = database.texts(used)
    names: dict[str, int] = {}
    of_used = [
        names.setdefault(short_kernel_name(texts[key]) if key in texts else _NO_NAME, len(names))
        for key in used
    ]
    if of_used == list(range(len(used))):
        return tuple(names), place
    return tuple(names), np.array(of_used, dtype=np.int32)[place]


def _graphs(columns: Columns, count: int) -> Ints:
    """Return each kernel's graph: its id, or the upper half of its node's, or −1."""
    nodes: Rare | None = columns.get("graphNodeId")
    graphs: Rare | None = columns.get("graphId")
    none = np.broadcast_to(np.int64(UNKNOWN), count)
    if (nodes is None or not len(nodes.rows)) and (graphs is None or not len(graphs.rows)):
        return none
    graph = none.copy()
    if nodes is not None:
        is_node = nodes.values != 0
        graph[nodes.rows[is_node]] = nodes.values[is_node] >> _GRAPH_SHIFT
    if graphs is not None:
        is_graph = graphs.values > 0
        graph[graphs.rows[is_graph]] = graphs.values[is_graph]
    return graph


def _with_graphs(
    found: KernelRows, columns: Columns, launches: Launches, devices: DeviceIds
) -> KernelRows:
    """Add graphs as kernels: the device was busy with them, though with what is not known."""
    if not columns or not len(columns["start"]):
        return found
    columns, damaged = sound(columns)
    count = len(columns["start"])
    graph = columns.get("graphId")
    name = np.full(count, len(found.names), dtype=np.int32)
    ids = np.full(count, UNKNOWN, dtype=np.int64) if graph is None else graph
    ids[ids == MISSING] = UNKNOWN
    added = _assembled(columns, name, ids, launches, devices)
    both = (np.concatenate((getattr(found.kernels, c), getattr(added, c))) for c in _FIELDS)
    return KernelRows(Kernels(*both), (*found.names, WHOLE_GRAPH), count, found.damaged + damaged)
