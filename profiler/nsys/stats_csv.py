"""Read the summaries that `nsys stats` makes of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture, Event, KernelSummary, Source
from stallscope.profiler.nsys.stats_tables import StatsRow, StatsTable, read_tables
from stallscope.profiler.trace.kernel_classes import kernel_class
from stallscope.profiler.trace.marks import step_mark

_DEVICE = "all devices"  # the summaries add them up
_OTHER = "other"
_MOST_CALLS = 20
_AGAIN = (
    "nsys stats --report cuda_gpu_kern_sum --format csv REPORT.nsys-rep "
    "(nsys until 2022 calls it gpukernsum)"
)
_TIMELINE = "give the report itself, or its export: nsys export --type sqlite REPORT.nsys-rep"
# A kernel launched inside nested ranges counts in each of them.
_TWICE = 1.01


def read_nsys_stats(path: str | PathLike[str]) -> Capture:
    """Read what `nsys stats` printed of kernels, copies, runtime calls and ranges.

    Kernels have the phase of the NVTX range they were launched in where nvtx_kern_sum is there and
    its ranges mark steps, else "other". There is no timeline in summaries: not how long the device
    idled, nor which copies were hidden. Raises InputError where no kernel was summed up.
    """
    path = Path(path)
    tables = read_tables(path)
    if not tables:
        raise InputError(f"{path} holds no summary by time of nsys stats; make one with: {_AGAIN}")
    kernels = _kernels(tables)
    if not kernels:
        raise InputError(f"{path} sums up no kernel; add them with: {_AGAIN}")
    rows = (*kernels, *_copies(tables))
    return Capture(
        events=(_no_timeline(), _mean_length(kernels)),
        kernels=tuple(sorted(rows, key=lambda row: -row.busy_ns)),
        sources=(Source(0, "nsys stats", str(path), "none", 0, 0),),
        meta={"ended": {}, "nsys_stats": _further(tables)},
    )


def _of(tables: Sequence[StatsTable], *columns: str, without: str = "") -> Iterator[StatsRow]:
    """Yield the rows of the tables that have all of `columns`, and not `without`."""
    for table in tables:
        if set(columns) <= set(table.columns) and without not in table.columns:
            yield from table.rows


def _kernels(tables: Sequence[StatsTable]) -> list[KernelSummary]:
    whole = list(_of(tables, "instances", "name", without="gridxyz"))  # cuda_gpu_kern_sum
    whole = whole or list(_of(tables, "instances", "name", "gridxyz"))  # cuda_gpu_kern_gb_sum
    mixed = list(_of(tables, "instances", "category", "operation"))  # cuda_gpu_sum
    whole = whole or [row for row in mixed if "kern" in row.cells["category"].lower()]
    phased = list(_phased(_of(tables, "nvtx range", "kernel name")))
    rows = [_kernel(row, _OTHER) for row in whole]
    total = sum(row.busy_ns for row in rows)
    in_phases = sum(row.busy_ns for row in phased)
    if not rows or (phased and in_phases <= _TWICE * total):
        return phased
    return rows


def _phased(rows: Iterator[StatsRow]) -> Iterator[KernelSummary]:
    """Keep the kernels of ranges that mark steps; nsys writes ranges as "domain:text"."""
    for row in rows:
        text = row.cells["nvtx range"].strip()
        mark = step_mark(text, None) or step_mark(text.partition(":")[2], None)
        if mark is not None and not mark.warmup:
            yield _kernel(row, mark.phase)


def _kernel(row: StatsRow, phase: str) -> KernelSummary:
    kind = kernel_class(row.name)
    return KernelSummary(_DEVICE, 0, phase, kind, row.name, row.count, row.total_ns, None)


def _copies(tables: Sequence[StatsTable]) -> list[KernelSummary]:
    rows = list(_of(tables, "operation", without="category"))  # cuda_gpu_mem_time_sum
    mixed = _of(tables, "operation", "category")
    rows = rows or [row for row in mixed if "mem" in row.cells["category"].lower()]
    return [_kernel(row, _OTHER) for row in rows]


def _no_timeline() -> Event:
    data = {
        "what": "the share of time in which a kernel ran",
        "reason": "nsys stats sums a trace up and drops its timeline",
        "how": _TIMELINE,
    }
    return Event(0, "not_observable", None, data)


def _mean_length(kernels: Sequence[KernelSummary]) -> Event:
    count = sum(row.launches for row in kernels)
    data = {
        "name": "kernel_length_mean",
        "value": sum(row.busy_ns for row in kernels) / max(1, count) * 1e-9,
        "unit": "s",
        "source": "kernel time ÷ launches, as nsys stats adds them up",
        "device": _DEVICE,
    }
    return Event(0, "trace_figure", None, data)


def _further(tables: Sequence[StatsTable]) -> dict[str, Any]:
    """Keep the longest runtime calls and ranges, as they stand."""
    calls = [row for row in _of(tables, "num calls", "name") if _is_runtime(row.name)]
    ranges = list(_of(tables, "instances", "range"))
    kept = {"calls": calls, "ranges": ranges}
    return {
        kind: [
            {"name": row.name, "count": row.count, "total_ns": row.total_ns}
            for row in sorted(rows, key=lambda row: -row.total_ns)[:_MOST_CALLS]
        ]
        for kind, rows in kept.items()
        if rows
    }


def _is_runtime(name: str) -> bool:
    """Tell calls into CUDA or HIP from those into the C library, which have the same columns."""
    return name.startswith(("cu", "hip"))
