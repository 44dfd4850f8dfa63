"""Kernels of a trace: where the device's own time went."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.result import Diagnosis, KernelRow
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Column, Section, Table

LONGEST_NAME = 48


def kernels(diagnosis: Diagnosis) -> Section:
    """One table by phase and class, one of the names that took longest."""
    classes = [row for row in diagnosis.kernels if row.name is None]
    names = [row for row in diagnosis.kernels if row.name is not None]
    if not classes:
        return Section("", ())
    return Section("Kernels of the trace", (_by_class(classes), _by_name(names)))


def _by_class(rows: Sequence[KernelRow]) -> Table:
    columns = (Column("Phase"), Column("Class"), *_NUMBERS, Column("Exposed", "number"))
    cells = tuple(
        (
            row.phase,
            row.kernel_class,
            *_numbers(row),
            "" if row.exposed_s is None else fmt.seconds(row.exposed_s),
        )
        for row in rows
    )
    return Table(columns, cells)


def _by_name(rows: Sequence[KernelRow]) -> Table:
    columns = (Column("Phase"), *_NUMBERS, Column("Mean", "number"), Column("Longest by name"))
    cells = tuple(
        (
            row.phase,
            *_numbers(row),
            fmt.seconds(row.busy_s / row.launches) if row.launches else "",
            _short(row.name or ""),
        )
        for row in rows
    )
    return Table(columns, cells)


_NUMBERS = (Column("Launches", "number"), Column("Time", "number"), Column("Share", "number"))


def _numbers(row: KernelRow) -> tuple[str, str, str]:
    return f"{row.launches:,}", fmt.seconds(row.busy_s), fmt.percent(row.share)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
