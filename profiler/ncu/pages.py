"""The tables that `ncu --csv` writes, as launches with their metrics.

A details page (long) has a row for each metric: "Metric Name", "Metric Unit", "Metric Value"; with
--print-summary one for each metric of a kernel or launch shape, with "Invocations" and "Average". A
raw page (wide) has a row for each launch, a column for each metric and the units in the row below
the header. Both may stand between lines of the profiled program and of ncu ("==PROF== …"). Tables
of (kernel_id, section, metric_name, value), which scripts make of details pages, have no units.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.text_lines import text_lines

NAME = "Kernel Name"
_SEPARATOR = "__"  # between unit and counter in the names of metrics: "dram__throughput.avg…"
_SCRIPTED = ("kernel_id", "metric_name", "value")
_MOST = 1e18  # no counter of one kernel goes beyond, and squares of it stay finite
_EXPORT = "ncu --import REPORT.ncu-rep --csv --page details"


@dataclass(slots=True)
class Launch:
    """One launch that ncu profiled, or `count` of one kernel whose metrics it averaged.

    `metrics` holds numbers by (metric name, unit), with the unit "" where the file states none.
    """

    name: str
    device: str | None
    count: int = 1
    metrics: dict[tuple[str, str], float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """What a page holds; `is_cut`: it ends in the middle of a row, which is left out."""

    launches: tuple[Launch, ...]
    is_cut: bool


def is_header(cells: Sequence[str]) -> bool:
    """Tell whether a row heads a table of ncu's."""
    names = {cell.strip() for cell in cells}
    if names.issuperset(_SCRIPTED):
        return True
    is_long = "Metric Name" in names and ("Metric Value" in names or "Average" in names)
    return NAME in names and (is_long or any(_SEPARATOR in name for name in names))


def has_page(lines: Sequence[str]) -> bool:
    """Tell whether a table of ncu's begins in these lines."""
    try:
        return any(is_header(row) for row in csv.reader(_could_head(lines)))
    except csv.Error:
        return False


def _could_head(lines: Sequence[str]) -> Iterator[str]:
    return (line for line in lines if NAME in line or _SCRIPTED[0] in line)


def read_page(path: Path) -> Page:
    """Read what was profiled; raise InputError where nothing was."""
    lines = [line for line in text_lines(path) if not line.startswith("==")]
    is_cut = sum(line.count('"') for line in lines) % 2 == 1  # within a quoted field
    rows = _rows(path, lines)
    header = [cell.strip() for cell in next((row for row in rows if is_header(row)), ())]
    if not header:
        raise InputError(f"{path} holds no table of ncu's; export one with: {_EXPORT}")
    body = (_named(header, row) for row in (_but_last(rows) if is_cut else rows) if _fits(row))
    if NAME not in header:
        launches = _scripted(body)
    elif "Metric Name" in header:
        launches = _long(body)
    else:
        launches = _wide(body, [name for name in header if _SEPARATOR in name])
    if not launches:
        raise InputError(
            f"{path} holds no kernel: none ran while ncu profiled, or none matched its filter"
        )
    return Page(tuple(launches), is_cut)


def _rows(path: Path, lines: Sequence[str]) -> Iterator[list[str]]:
    try:
        yield from csv.reader(lines)
    except csv.Error as error:
        raise InputError(f"{path} is not the CSV that ncu writes ({error})") from error


def _but_last(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    return (row for row, _ in pairwise(rows))


def _fits(row: Sequence[str]) -> bool:
    """Tell rows of the table from lines of the program between them."""
    return len(row) >= len(_SCRIPTED)


def _named(header: Sequence[str], row: Sequence[str]) -> dict[str, str]:
    """Name a row's cells; ncu leaves out the last ones, of rules, where they would be empty."""
    return dict(zip_longest(header, row[: len(header)], fillvalue=""))


def number(text: str) -> float | None:
    """Return a number with its thousands separators taken out; None for "n/a" and the like."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if abs(value) <= _MOST else None


def _long(rows: Iterator[Mapping[str, str]]) -> list[Launch]:
    launches: dict[tuple[str | None, ...], Launch] = {}
    for row in rows:
        if not row[NAME]:
            continue
        launch = launches.setdefault(_key(row), _launch(row))
        value = number(row.get("Metric Value", row.get("Average", "")))
        if row["Metric Name"] and value is not None:
            launch.metrics.setdefault((row["Metric Name"], row.get("Metric Unit", "")), value)
    return list(launches.values())


def _key(row: Mapping[str, str]) -> tuple[str | None, ...]:
    """What tells launches apart: ids run through a process; summaries have shapes instead."""
    shape = ("Process ID", "ID", NAME, "Device", "Block Size", "Grid Size")
    return tuple(row.get(name) for name in shape)


def _launch(row: Mapping[str, str]) -> Launch:
    count = number(row.get("Invocations", "1"))
    return Launch(row[NAME], row.get("Device") or None, max(1, int(count or 1)))


def _wide(rows: Iterator[Mapping[str, str]], metrics: Sequence[str]) -> list[Launch]:
    units: Mapping[str, str] = {}
    launches = []
    for row in rows:
        if not row[NAME]:
            units = units or row
            continue
        launch = _launch(row)
        for name in metrics:
            value = number(row[name])
            if value is not None:
                launch.metrics[name, units.get(name, "")] = value
        launches.append(launch)
    return launches


def _scripted(rows: Iterator[Mapping[str, str]]) -> list[Launch]:
    launches: dict[str, Launch] = {}
    for row in rows:
        launch = launches.setdefault(row["kernel_id"], Launch(row["kernel_id"], None))
        value = number(row["value"])
        if value is not None:
            launch.metrics.setdefault((row["metric_name"], ""), value)
    return list(launches.values())
