"""Which kernels took the time: by class in each phase, and the longest names."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.analyzers.result import KernelRow
from stallscope.profiler.capture import Capture, KernelSummary

MOST_NAMES = 10


def kernel_table(capture: Capture) -> tuple[KernelRow, ...]:
    """Return rows by phase and class, then the names that took longest, each by falling time."""
    total_ns = sum(k.busy_ns for k in capture.kernels)
    if not total_ns:
        return ()
    classes: dict[tuple[str, str], list[KernelSummary]] = {}
    names: dict[tuple[str, str, str], list[KernelSummary]] = {}
    for k in capture.kernels:
        classes.setdefault((k.phase, k.kernel_class), []).append(k)
        names.setdefault((k.phase, k.kernel_class, k.name), []).append(k)
    by_class = [_row(*key, None, rows, total_ns) for key, rows in classes.items()]
    by_name = [_row(*key, rows, total_ns) for key, rows in names.items()]
    by_class.sort(key=lambda row: (row.phase, -row.busy_s))
    by_name.sort(key=lambda row: -row.busy_s)
    return (*by_class, *by_name[:MOST_NAMES])


def _row(
    phase: str, kernel_class: str, name: str | None, rows: Iterable[KernelSummary], total_ns: int
) -> KernelRow:
    rows = tuple(rows)
    busy_ns = sum(k.busy_ns for k in rows)
    exposed = [k.exposed_ns for k in rows if k.exposed_ns is not None]
    return KernelRow(
        phase,
        kernel_class,
        name,
        sum(k.launches for k in rows),
        busy_ns * 1e-9,
        busy_ns / total_ns,
        sum(exposed) * 1e-9 if exposed else None,
    )
