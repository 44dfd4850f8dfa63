"""The tables that `nsys stats` prints, as CSV or as text, one or several in a file.

Report names changed in 2023 (gpukernsum became cuda_gpu_kern_sum) and headers with them ("Time(%)",
"Average" became "Time (%)", "Avg (ns)"), but "Total Time (ns)" stayed; --timeunit changes its unit.
Between the tables stand titles and lines about the export. A text table has a line of dashes under
its header, whose runs are as wide as its columns.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.text_lines import text_lines

_TOTAL = re.compile(r"total time \((n|u|μ|m|)s(ec)?\)", re.IGNORECASE)
_NS = {"n": 1, "u": 10**3, "μ": 10**3, "m": 10**6, "": 10**9}
_MOST_NS = 10**18  # thirty years: no time or count of a trace is beyond
_COUNTS = ("instances", "num calls", "count", "operations", "calls", "kern inst")
_NAMES = ("kernel name", "name", "operation", "range")  # of a row, the more telling one first
_DASHES = re.compile(r"\s*-{2,}(\s+-{2,})+\s*")
_COLUMN = re.compile(r"-+")


@dataclass(frozen=True, slots=True)
class StatsRow:
    """One row of a summary: what it adds up, how often that ran, and for how long in all."""

    name: str
    count: int
    total_ns: int
    cells: Mapping[str, str]  # by column, in lower case


@dataclass(frozen=True, slots=True)
class StatsTable:
    """One summary. `columns` are its header in lower case."""

    columns: tuple[str, ...]
    rows: tuple[StatsRow, ...]


def is_header(cells: Sequence[str]) -> bool:
    """Tell whether a row heads a summary by time."""
    names = [cell.strip().lower() for cell in cells]
    has_total = any(_TOTAL.fullmatch(name) for name in names)
    return has_total and _first(_COUNTS, names) is not None and _first(_NAMES, names) is not None


def read_tables(path: Path) -> tuple[StatsTable, ...]:
    """Return the summaries by time of a file; raise InputError where it cannot be read."""
    lines = text_lines(path)
    try:
        found = tuple(_tables(csv.reader(lines)))
    except csv.Error as error:
        raise InputError(f"{path} is not the CSV that nsys stats writes ({error})") from error
    return found or tuple(_tables(_columns(lines)))


def has_table(lines: Sequence[str]) -> bool:
    """Tell whether a summary by time begins in these lines."""
    if not any("total time (" in line.lower() for line in lines):
        return False
    try:
        return any(is_header(row) for rows in (csv.reader(lines), _columns(lines)) for row in rows)
    except csv.Error:
        return False


def _first(wanted: Sequence[str], names: Sequence[str]) -> str | None:
    return next((name for name in wanted if name in names), None)


def _columns(lines: Sequence[str]) -> Iterator[list[str]]:
    """Cut the lines of text tables at the columns that their dashes mark; others are one cell."""
    spans: list[tuple[int, int]] = []
    for line, following in pairwise([*(line.rstrip("\n\r") for line in lines), ""]):
        if _DASHES.fullmatch(following):
            spans = [match.span() for match in _COLUMN.finditer(following)]
        if not line.strip() or _DASHES.fullmatch(line):
            continue
        last = len(spans) - 1
        cells = [line[a:] if i == last else line[a:b] for i, (a, b) in enumerate(spans)]
        yield [cell.strip() for cell in cells] or [line]


def _tables(rows: Iterator[list[str]]) -> Iterator[StatsTable]:
    columns: tuple[str, ...] = ()
    found: list[StatsRow] = []
    for cells in rows:
        if is_header(cells):
            if columns:
                yield StatsTable(columns, tuple(found))
            columns, found = tuple(cell.strip().lower() for cell in cells), []
        elif columns and len(cells) == len(columns):
            row = _row(dict(zip(columns, cells, strict=True)))
            if row is not None:
                found.append(row)
    if columns:
        yield StatsTable(columns, tuple(found))


def _row(cells: Mapping[str, str]) -> StatsRow | None:
    names = tuple(cells)
    count, name = _first(_COUNTS, names), _first(_NAMES, names)
    total = next(match for column in names if (match := _TOTAL.fullmatch(column)))
    time, times = _number(cells[total[0]]), _number(cells[count or ""])
    if name is None or time is None or not times:
        return None
    total_ns = round(time * _NS[total[1].lower()])
    if times < 1 or total_ns > _MOST_NS:
        return None
    return StatsRow(cells[name].strip(), int(times), total_ns, cells)


def _number(text: str) -> float | None:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if 0 <= value <= _MOST_NS else None
