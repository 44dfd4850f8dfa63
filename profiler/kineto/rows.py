"""The rows of a Kineto trace that we keep, gathered from lists of events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from stallscope.profiler.kineto.columns import Column, Index, Threads, Times, args_of, integers
from stallscope.profiler.kineto.events import NO_ARGS, Event
from stallscope.profiler.kineto.names import CALLS, category
from stallscope.profiler.trace.timeline import UNKNOWN

# MTIA's firmware reports programs and transfers in one category; waiting is no work.
_MTIA = "mtia_ccp_events"
_MTIA_WAITS = frozenset(("event_wait", "event_record"))


@dataclass(slots=True)
class DeviceRows:
    """Kernels or copies; `name` indexes `names`."""

    names: Index = field(default_factory=Index)
    times: Times = field(default_factory=Times)
    name: Column = field(default_factory=Column)
    device: Column = field(default_factory=Column)
    stream: Column = field(default_factory=Column)
    correlation: Column = field(default_factory=Column)
    graph: Column = field(default_factory=Column)
    bytes: Column = field(default_factory=Column)


@dataclass(slots=True)
class HostRows:
    """Calls, annotations or operators; `name` indexes Rows.host_names."""

    times: Times = field(default_factory=Times)
    name: Column = field(default_factory=Column)
    thread: Column = field(default_factory=Column)
    correlation: Column = field(default_factory=Column)


@dataclass(slots=True)
class Rows:
    """Everything kept of a trace's events."""

    kernels: DeviceRows = field(default_factory=DeviceRows)
    copies: DeviceRows = field(default_factory=DeviceRows)
    calls: HostRows = field(default_factory=HostRows)
    marks: HostRows = field(default_factory=HostRows)
    operators: HostRows = field(default_factory=HostRows)
    windows: Times = field(default_factory=Times)
    overheads: Times = field(default_factory=Times)
    host_names: Index = field(default_factory=Index)
    devices: Index = field(default_factory=Index)
    threads: Threads = field(default_factory=Threads)
    thread_names: dict[tuple[object, object], str] = field(default_factory=dict)
    process_names: dict[object, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # by category
    lost: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # without sound times
    has_fractions: bool = False

    @property
    def count(self) -> int:
        """Events with a length: neither flows nor names."""
        return sum(self.counts.values())


def add(events: Sequence[Event], rows: Rows) -> None:
    """Sort events into the rows."""
    groups: dict[str | None, list[Event]] = defaultdict(list)
    for event in events:
        if event.ph == "X":
            groups[event.cat].append(event)
        elif event.ph == "M":
            _add_name(event, rows)
    for name, group in groups.items():
        timed = [e for e in group if e.ts is not None and e.dur is not None and e.dur >= 0.0]
        if len(timed) < len(group):
            rows.lost[category(name)] += len(group) - len(timed)
        if timed:
            _add_group(category(name), timed, rows)


def _add_group(name: str, group: list[Event], rows: Rows) -> None:
    rows.counts[name] += len(group)
    rows.has_fractions = rows.has_fractions or _has_fraction(group)
    if name == "kernel":
        _add_device(group, rows.kernels, rows)
    elif name in ("gpu_memcpy", "gpu_memset"):
        _add_device(group, rows.copies, rows)
        rows.copies.bytes.parts.append(integers([a.bytes for a in args_of(group)]))
    elif name == _MTIA:
        _add_mtia(group, rows)
    elif name in CALLS:
        _add_host(group, rows.calls, rows)
        rows.calls.correlation.parts.append(integers([a.correlation for a in args_of(group)]))
    elif name == "user_annotation":
        _add_host(group, rows.marks, rows)
    elif name == "cpu_op":
        _add_host(group, rows.operators, rows)
    elif name == "Trace":
        rows.windows.add(group)
    elif name == "overhead":
        rows.overheads.add(group)


def _has_fraction(group: Sequence[Event]) -> bool:
    return any(e.ts is not None and e.ts % 1.0 for e in group[:100])


def _add_host(group: list[Event], to: HostRows, rows: Rows) -> None:
    names, threads = rows.host_names, rows.threads
    to.times.add(group)
    to.name.add([names[e.name] for e in group])
    to.thread.add([threads[e.pid][e.tid] for e in group])


def _add_device(group: list[Event], to: DeviceRows, rows: Rows) -> None:
    names, devices = to.names, rows.devices
    args = args_of(group)
    to.times.add(group)
    to.name.add([names[e.name] for e in group])
    pairs = zip(args, group, strict=True)
    to.device.add([devices[e.pid if a.device == UNKNOWN else a.device] for a, e in pairs])
    streams = integers([a.stream for a in args])
    if np.any(streams == UNKNOWN):
        lanes = integers([e.tid for e in group])
        streams = np.where(streams == UNKNOWN, lanes, streams)
    to.stream.parts.append(streams)
    to.correlation.parts.append(integers([a.correlation for a in args]))
    graphs = integers([a.graph for a in args])
    if np.any(graphs <= 0):  # a node's id holds its graph's in the upper half (torch.cuda)
        nodes = integers([a.graph_node for a in args])
        graphs = np.where(graphs <= 0, np.where(nodes > 0, nodes >> 32, UNKNOWN), graphs)
    to.graph.parts.append(graphs)


def _add_mtia(group: list[Event], rows: Rows) -> None:
    copies = [e for e in group if (e.args or NO_ARGS).direction is not None]
    work = [e for e in group if (e.args or NO_ARGS).direction is None]
    _add_device([e for e in work if e.name not in _MTIA_WAITS], rows.kernels, rows)
    for event in copies:
        event.name = f"{event.name} {(event.args or NO_ARGS).direction}"
    _add_device(copies, rows.copies, rows)
    rows.copies.bytes.parts.append(integers([a.size for a in args_of(copies)]))


def _add_name(event: Event, rows: Rows) -> None:
    name = (event.args or NO_ARGS).name
    if name is None:
        return
    if event.name == "thread_name":
        rows.thread_names[event.pid, event.tid] = name.strip()
    elif event.name == "process_name":
        rows.process_names[event.pid] = name.strip()
