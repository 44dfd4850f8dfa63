"""Small nsys exports of three generations of its schema, written table by table.

Columns are those of NVIDIA's "SQLite Export Schema Reference" of 2021.1, 2023.2 and 2026.1, in
their order, without those at the end that no reader wants.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

OLD, MIDDLE, NEW = "2021.1", "2023.2", "2026.1"
GENERATIONS = (OLD, MIDDLE, NEW)

PID = 0x0001_0000_2A00_0000  # globalPid of process 42
OTHER_PID = 0x0001_0000_2B00_0000  # of process 43


def tid(thread: int, pid: int = PID) -> int:
    """Return the globalTid of a thread of a process."""
    return pid + thread


_GREEN = {NEW: "greenContextId INTEGER,", MIDDLE: "", OLD: ""}
_DEVICE = (
    "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, {green} streamId INTEGER NOT NULL, correlationId INTEGER, "
    "globalPid INTEGER, "
)
_KERNEL = (
    "demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, {mangled} launchType INTEGER, "
    "cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, "
    "gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL"
)
_SCHEMAS: Mapping[str, str] = {
    "CUPTI_ACTIVITY_KIND_KERNEL": _DEVICE + _KERNEL,
    "CUPTI_ACTIVITY_KIND_MEMCPY": _DEVICE
    + "bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, {old_source} srcKind INTEGER, "
    "dstKind INTEGER, srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, "
    "dstContextId INTEGER, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMSET": _DEVICE
    + "value INTEGER NOT NULL, bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER NOT NULL, end INTEGER NOT NULL, "
    "eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, "
    "nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": _DEVICE + "syncType INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": _DEVICE
    + "graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, "
    "rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, "
    "endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, "
    "int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER",
    "OSRT_API": "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER, "
    "globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL",
    "GPU_METRICS": "timestamp INTEGER, typeId INTEGER NOT NULL, metricId INTEGER NOT NULL, "
    "value INTEGER NOT NULL",
    "TARGET_INFO_GPU_METRICS": "typeId INTEGER NOT NULL, sourceId INTEGER NOT NULL, "
    "typeName TEXT NOT NULL, metricId INTEGER NOT NULL, metricName TEXT NOT NULL",
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "TARGET_INFO_GPU": "vmId INTEGER, id INTEGER NOT NULL, name TEXT, totalMemory INTEGER, "
    "memoryBandwidth INTEGER, smCount INTEGER",
    "TARGET_INFO_CUDA_GPU": "deviceId INTEGER NOT NULL, name TEXT, totalGlobalMemory INTEGER, "
    "globalMemoryBandwidth INTEGER, numMultiprocessors INTEGER",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, "
    "uuid TEXT, numMultiprocessors INTEGER",
    "TARGET_INFO_SYSTEM_ENV": "globalVid INTEGER, devStateName TEXT, name TEXT NOT NULL, "
    "nameEnum INTEGER, value TEXT NOT NULL",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT{system}",
    "ANALYSIS_DETAILS": "globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, "
    "startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL",
    "DIAGNOSTIC_EVENT": "timestamp INTEGER, timestampType INTEGER, source INTEGER, "
    "severity INTEGER NOT NULL, text TEXT NOT NULL, globalPid INTEGER",
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "EXPORT_META_DATA": "name TEXT NOT NULL, value TEXT",
    "META_DATA_CAPTURE": "name TEXT NOT NULL, value TEXT",
}
# What the generations add to the end of a table.
_ADDED = {
    ("CUPTI_ACTIVITY_KIND_KERNEL", MIDDLE): ", graphNodeId INTEGER",
    ("CUPTI_ACTIVITY_KIND_KERNEL", NEW): ", graphNodeId INTEGER, graphId INTEGER, notes TEXT",
}

Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def schema(table: str, generation: str) -> str:
    """Return the CREATE statement of a table in a generation of the schema."""
    columns = _SCHEMAS[table].format(
        green=_GREEN[generation],
        mangled="" if generation == OLD else "mangledName INTEGER,",
        old_source="deprecatedSrcId INTEGER," if generation == NEW else "",
        system=", systemClockNs INTEGER" if generation == NEW else "",
    )
    return f"CREATE TABLE {table} ({columns}{_ADDED.get((table, generation), '')})"


def write(path: Path, rows: Rows, generation: str = NEW) -> Path:
    """Write an export with these tables; what NOT NULL columns are not given is 0."""
    with closing(sqlite3.connect(path)) as db:
        for table, records in rows.items():
            db.execute(schema(table, generation))
            info = db.execute(f"PRAGMA table_info({table})").fetchall()
            empty = {name: 0 for _, name, _, needed, *_ in info if needed}
            for record in records:
                values = {**empty, **{k: v for k, v in record.items() if k in _names(info)}}
                names = ", ".join(values)
                marks = ", ".join("?" * len(values))
                db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", [*values.values()])
        db.commit()
    return path


def _names(info: Sequence[Sequence[Any]]) -> set[str]:
    return {str(row[1]) for row in info}


def strings(*texts: str) -> list[dict[str, Any]]:
    """Return StringIds rows that number the texts from 100 on."""
    return [{"id": 100 + i, "value": text} for i, text in enumerate(texts)]
