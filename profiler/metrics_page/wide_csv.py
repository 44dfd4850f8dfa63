"""Tables of scraped metrics: a row a scrape, a column a metric, as loggers of benchmarks write.

Columns are named as vLLM's metrics, with or without prefix and "_total"; "_pct" is a percentage.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from stallscope.profiler.metrics_page.exposition import sane_ns
from stallscope.profiler.metrics_page.scrape import Identity, Scrape
from stallscope.profiler.metrics_page.vllm import VLLM
from stallscope.profiler.telemetry.query_csv import split_cells

_LAST_S = 7e9  # in the year 2191
_UNIX = ("timestamp_sec", "timestamp", "unix_time", "time")
_RELATIVE = ("relative_time_sec", "elapsed_sec", "elapsed_s")
_GAUGES = {"running", "waiting"}  # without them a table tells nothing of the load
_MOST_LONG = 1 << 14
_S = 1_000_000_000
_MOST = 1e18
_PICKS = VLLM.picks()
_VLLM = Identity(VLLM.engine, ())


class Column(NamedTuple):
    """What a column tells: our quantity, how good a place of it this is, and its unit."""

    quantity: str
    rank: int
    scale: float


class Rows(NamedTuple):
    """A table's rows: scrapes with the times they tell, and how many rows did not fit."""

    scrapes: list[Scrape]
    wrong: int
    is_cut: bool


def heading(line: str) -> Mapping[int, Column] | None:
    """Return what each column of a header tells; None where it is no header of such a table."""
    if len(line) >= _MOST_LONG or "," not in line:
        return None
    names = _names(line)
    if not any(name in names for name in (*_UNIX, *_RELATIVE)):
        return None
    found = {i: c for i, name in enumerate(names) if (c := _column(name)) is not None}
    return found if {c.quantity for c in found.values()} >= _GAUGES else None


def _names(line: str) -> list[str]:
    return [cell.strip().strip('"').strip().lower() for cell in line.split(",")]


def _column(name: str) -> Column | None:
    metric = VLLM.prefix.sub("", name, count=1)
    bare = re.sub(r"_pct$|_percent$", "_perc", metric)
    picks = [p for p in _PICKS.get(bare, ()) if not p.label]
    if not picks:
        return None
    return Column(picks[0].quantity, picks[0].rank, 0.01 if bare != metric else 1.0)


def read_rows(header: str, lines: Iterable[str]) -> Rows:
    """Read what follows a header; a row without the header's number of cells is left out."""
    columns, names = heading(header) or {}, _names(header)
    scrapes: list[Scrape] = []
    wrong, line = 0, "\n"
    for line in lines:
        if not line.endswith(("\n", "\r")):
            break
        cells = split_cells(line, ",") if len(line) < _MOST_LONG else []
        scrape = _scrape(cells, names, columns) if len(cells) == len(names) else None
        if scrape is not None:
            scrapes.append(scrape)
        elif line.strip():
            wrong += 1
    return Rows(scrapes, wrong, not line.endswith(("\n", "\r")))


def _scrape(
    cells: Sequence[str], names: Sequence[str], columns: Mapping[int, Column]
) -> Scrape | None:
    unix_s, relative_s = _seconds(cells, names, _UNIX), _seconds(cells, names, _RELATIVE)
    if unix_s is None and relative_s is None:
        return None
    values: dict[str, float] = {}
    for index, column in sorted(columns.items(), key=lambda item: item[1].rank):
        value = _number(cells[index])
        if value is not None:
            values.setdefault(column.quantity, value * column.scale)
    VLLM.finish(values)
    told = {_VLLM: {k: v for k, v in values.items() if not k.startswith("_")}} if values else {}
    unix_ns = None if unix_s is None else sane_ns(round(unix_s * 1e6) * 1000)  # a float's grain
    return Scrape(round((relative_s or 0.0) * _S), unix_ns, told, {})


def _seconds(cells: Sequence[str], names: Sequence[str], wanted: Sequence[str]) -> float | None:
    """Return a time; None for what is none of our days."""
    seconds = _first(cells, names, wanted)
    return seconds if seconds is not None and abs(seconds) < _LAST_S else None


def _first(cells: Sequence[str], names: Sequence[str], wanted: Sequence[str]) -> float | None:
    return next((_number(cells[names.index(n)]) for n in wanted if n in names), None)


def _number(cell: str) -> float | None:
    try:
        value = float(cell) if len(cell) < 40 and "_" not in cell else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) < _MOST else None
