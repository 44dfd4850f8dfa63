"""Copies and memsets on devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from stallscope.profiler.nsys.calls import Launches
from stallscope.profiler.nsys.database import Database
from stallscope.profiler.nsys.device_ids import DeviceIds
from stallscope.profiler.nsys.growing import Columns, Kind
from stallscope.profiler.nsys.page_rows import MISSING
from stallscope.profiler.nsys.sound_rows import sound
from stallscope.profiler.nsys.timed_columns import ON_DEVICE, timed_columns
from stallscope.profiler.trace.timeline import UNKNOWN, Bytes, Copies, CopyKind, empty

MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET = "CUPTI_ACTIVITY_KIND_MEMSET"
# CUpti_ActivityMemcpyKind, as in ENUM_CUDA_MEMCPY_OPER: arrays count as their device, 11 to 13 are
# of unified memory.
_KIND_OF = np.full(256, CopyKind.OTHER, dtype=np.uint8)
_KIND_OF[[1, 3, 11]] = CopyKind.HOST_TO_DEVICE
_KIND_OF[[2, 4, 12]] = CopyKind.DEVICE_TO_HOST
_KIND_OF[[5, 6, 7, 8, 13]] = CopyKind.WITHIN_DEVICE
_KIND_OF[10] = CopyKind.BETWEEN_DEVICES
# ENUM_CUDA_MEM_KIND: 0 is pageable, 1 pinned; managed and unknown memory is neither.
_PAGEABLE_OF = np.full(256, 255, dtype=np.uint8)
_PAGEABLE_OF[[0, 1]] = 1, 0
_KINDS: dict[str, Kind] = {**ON_DEVICE, "bytes": "int64"}
_COPY_KINDS: dict[str, Kind] = {
    "copyKind": "uint8",
    "srcKind": "uint8",
    "dstKind": "uint8",
    "srcDeviceId": "int32",
    "dstDeviceId": "int32",
}


def read_copies(database: Database, launches: Launches, devices: DeviceIds) -> tuple[Copies, int]:
    """Read copies, then memsets; return them and how many damaged rows were left out."""
    parts, damaged = [], 0
    for name, kinds in ((MEMCPY, {**_KINDS, **_COPY_KINDS}), (MEMSET, _KINDS)):
        columns = timed_columns(database, name, kinds)
        if not columns:
            continue
        columns, left_out = sound(columns)
        damaged += left_out
        parts.append(_part(columns, name, launches, devices))
    if not parts:
        return empty(Copies), damaged
    return Copies(*_joined(parts)), damaged


def _joined(parts: list[Copies]) -> Iterator[np.ndarray]:
    for field in fields(Copies):
        yield np.concatenate([getattr(part, field.name) for part in parts])


def _part(columns: Columns, name: str, launches: Launches, devices: DeviceIds) -> Copies:
    count = len(columns["start"])
    kind = _kinds(columns) if name == MEMCPY else np.full(count, CopyKind.MEMSET, np.uint8)
    size = columns.get("bytes", np.full(count, MISSING))
    stream = columns.get("streamId", np.full(count, UNKNOWN, np.int32))
    launch_ns, thread = launches.of(columns)
    return Copies(
        columns["start"],
        columns["end"],
        devices.places(columns),
        stream,
        kind,
        np.where(size == MISSING, UNKNOWN, size),
        _pageable(columns, kind),
        launch_ns,
        thread,
    )


def _kinds(columns: Columns) -> Bytes:
    numbers = columns.get("copyKind")
    if numbers is None:
        return np.full(len(columns["start"]), CopyKind.OTHER, dtype=np.uint8)
    kind = _KIND_OF[numbers]
    source, target = columns.get("srcDeviceId"), columns.get("dstDeviceId")
    if source is not None and target is not None:
        is_known = (source != UNKNOWN) & (target != UNKNOWN)
        kind[(kind == CopyKind.WITHIN_DEVICE) & is_known & (source != target)] = (
            CopyKind.BETWEEN_DEVICES
        )
    return kind


def _pageable(columns: Columns, kind: Bytes) -> Bytes:
    """Look at the host's end of each copy."""
    pageable = np.full(len(kind), 255, dtype=np.uint8)
    for way, end in ((CopyKind.HOST_TO_DEVICE, "srcKind"), (CopyKind.DEVICE_TO_HOST, "dstKind")):
        if end in columns:
            mine = kind == way
            pageable[mine] = _PAGEABLE_OF[columns[end][mine]]
    return pageable
