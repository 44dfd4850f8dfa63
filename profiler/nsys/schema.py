"""Tables and columns that an export lacks, and what cannot be told without them.

Nsight Systems renames and drops columns between versions ("SQLite Export Schema Reference"), and
exports are edited by hand: what is missing must not read as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stallscope.profiler.nsys.calls import RUNTIME
from stallscope.profiler.nsys.copies import MEMCPY, MEMSET
from stallscope.profiler.nsys.database import STRINGS, Database
from stallscope.profiler.nsys.gpu_metrics import METRICS
from stallscope.profiler.nsys.kernels import GRAPH_TRACE, KERNEL
from stallscope.profiler.nsys.nvtx import NVTX
from stallscope.profiler.nsys.os_calls import OSRT
from stallscope.profiler.trace.timeline import Finding

_HOW = (
    "Export the report again, with the nsys that recorded it; if the columns are still missing, "
    "its schema is one that is not known here."
)
_LAUNCHES = (
    "which call launched a kernel is not known, so that time in which a device had nothing to do "
    "cannot be told from time in which work was queued"
)
_NAMES = "the names of kernels are not known, nor what kind of work they are"
_TIMES = (("start",), ("end",))


@dataclass(frozen=True, slots=True)
class _Need:
    """Columns of a table, of each group one, and what is not known without."""

    table: str
    columns: tuple[tuple[str, ...], ...]
    unknown: str


_KERNEL_TIMES = _Need(KERNEL, _TIMES, "when its kernels ran is not known, and none is read")
_NEEDS = (
    _Need(KERNEL, (("correlationId",),), _LAUNCHES),
    _Need(KERNEL, (("deviceId",),), "all kernels are taken to be of one device"),
    _Need(KERNEL, (("demangledName", "shortName", "mangledName"),), _NAMES),
    _Need(GRAPH_TRACE, _TIMES, "when its CUDA graphs ran is not known, and none is read"),
    _Need(MEMCPY, _TIMES, "when its copies ran is not known, and none is read"),
    _Need(MEMSET, _TIMES, "when its memsets ran is not known, and none is read"),
    _Need(RUNTIME, (*_TIMES, ("correlationId",)), _LAUNCHES),
    _Need(RUNTIME, (("nameId",),), "what the host's calls asked for is not known"),
    _Need(NVTX, (*_TIMES, ("eventType",)), "its ranges are not read, and mark no steps"),
    _Need(NVTX, (("text", "textId"),), "the names of ranges are not known, and mark no steps"),
    _Need(NVTX, (("globalTid",),), "which thread a range is of is not known"),
    _Need(OSRT, _TIMES, "the host's waits in system calls are not read"),
    _Need(METRICS, (("timestamp", "rawTimestamp"), ("typeId",), ("metricId",), ("value",)),
          "the device's counters are not read"),
)  # fmt: skip


def kernels_lost(database: Database) -> Finding | None:
    """Say that the table of kernels has rows, but not the columns that tell when they ran."""
    missing = _missing(database, _KERNEL_TIMES)
    return None if missing is None else Finding("no_kernels", missing, _HOW)


def changed_schema(database: Database) -> Iterator[Finding]:
    """Yield what tables with rows lack, and which tables are missing that kernels go with."""
    for need in _NEEDS:
        missing = _missing(database, need)
        if missing is not None:
            yield Finding("changed_schema", missing, _HOW)
    if not database.has_rows(KERNEL):
        return
    if not database.has_rows(RUNTIME):
        yield Finding(
            "no_calls",
            f"The file has no calls of the host into CUDA ({RUNTIME}): {_LAUNCHES}",
            "Trace with nsys profile -t cuda, and export all tables.",
        )
    if not database.has_texts:
        yield Finding("no_texts", f"The file has no table of texts ({STRINGS}): {_NAMES}", _HOW)


def _missing(database: Database, need: _Need) -> str | None:
    if not database.has_rows(need.table):
        return None
    table = database.tables[need.table]
    lacking = [" or ".join(group) for group in need.columns if table.first(*group) is None]
    if not lacking:
        return None
    columns = "column" if len(lacking) == 1 else "columns"
    return f"The table {need.table} lacks the {columns} {', '.join(lacking)}: {need.unknown}"
