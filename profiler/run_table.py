"""Read a table of runs that somebody wrote down: settings and figures, one run a line."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.regular_file import check_readable
from stallscope.profiler.run_cells import (
    by_test,
    figure_of,
    is_command,
    is_reading,
    measured,
    number,
    setting_name,
    settings_of,
)
from stallscope.profiler.text_lines import decoded

MOST_BYTES = 1 << 22
DEFAULT = "default"  # the value of an option that other runs were given and this one was not
_NAME = ("name", "run")
_OFFERED, _REACHED = "max_concurrency", "concurrency"  # of SGLang's results, where both stand
_RULE = re.compile(r":?-+:?")
NEEDED = (
    "a table of runs has a header of settings and figures, a figure's column ending in _per_s, /s, "
    "_ms or _s, or named as benchmarks do: threads,tok/s"
)


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as written down; figures are rates per second, or seconds (`is_time`).

    `under` names the figures of which only a bound was written; `readings` are what was seen while
    it ran, and `options` come from a command line.
    """

    name: str
    settings: dict[str, float | str]
    figures: dict[str, tuple[float, bool]]
    under: frozenset[str] = frozenset()
    readings: dict[str, float | str] = field(default_factory=dict)
    options: dict[str, float | str] = field(default_factory=dict)


def has_run_table(text: str) -> bool:
    """Tell whether a table of runs begins here: a header with a figure, and a line below it."""
    rows = [row for _, row in _numbered(text, most=3) if row]
    if len(rows) < 2 or len(rows[0]) < 2 or len(rows[1]) != len(rows[0]):
        return False
    return any(figure_of(title) and not is_reading(title) for title in rows[0])


def read_run_table(path: Path) -> list[RunRow]:
    """Read every line of a table of runs; InputError names the line that is none."""
    check_readable(path)
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(f"{path}: over {MOST_BYTES >> 20} MiB; {NEEDED}")
    text = decoded(data)
    if not has_run_table(text):
        raise InputError(f"{path}: {NEEDED}")
    try:
        rows = [(line, row) for line, row in _numbered(text) if any(row)]
    except csv.Error as error:
        raise InputError(f"{path}: {error}; {NEEDED}") from error
    titles = [title.strip() for title in rows[0][1]]
    if len(set(titles)) < len(titles):
        raise InputError(f"{path}: two columns have one name; {NEEDED}")
    return _with_options([_row(path, line, titles, row) for line, row in rows[1:]])


def _numbered(text: str, most: int | None = None) -> list[tuple[int, list[str]]]:
    """Split a Markdown table, or one with commas, semicolons or tabs; each row by its line.

    A Markdown table ends at the first line that does not begin with a bar: llama-bench prints its
    build below.
    """
    lines = [(i, line) for i, line in enumerate(text.splitlines(), 1) if line.strip()][:most]
    if not text.lstrip().startswith("|"):
        reader = csv.reader((line for _, line in lines), dialect=_dialect(text))
        # A quoted cell may go over several lines: a row stands where its last line does.
        return [(lines[reader.line_num - 1][0], row) for row in reader]
    barred = takewhile(lambda one: one[1].lstrip().startswith("|"), lines)
    rows = [(i, _markdown(line)) for i, line in barred]
    return [(i, row) for i, row in rows if not all(_RULE.fullmatch(cell) for cell in row)]


def _markdown(line: str) -> list[str]:
    inside = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inside)]


def _dialect(text: str) -> type[csv.Dialect]:
    class Found(csv.excel):
        delimiter = max(",;\t", key=text.split("\n", 1)[0].count)

    return Found


def _row(path: Path, line: int, titles: Sequence[str], row: Sequence[str]) -> RunRow:
    if len(row) != len(titles):
        raise InputError(f"{path}, line {line}: {len(row)} values under {len(titles)} columns")
    found, under = RunRow(f"line {line}", {}, {}), set()
    offers = any(setting_name(title) == _OFFERED for title in titles)
    tested = _tested(titles, row)
    for title, cell in zip(titles, (cell.strip() for cell in row), strict=True):
        figure, value = figure_of(title), number(cell)
        figure = by_test(figure, tested)
        is_seen = is_reading(title) or (offers and setting_name(title) == _REACHED)
        if not cell:
            continue
        if figure is not None and not is_seen:
            value, is_under = measured(cell)
            if value is None or value <= 0:
                raise InputError(
                    f"{path}, line {line}: {title} is {cell!r}; leave it empty if not known"
                )
            found.figures[figure.name] = (value * figure.scale, figure.is_time)
            under |= {figure.name} if is_under else set()
        elif title.lower() in _NAME:
            found = replace(found, name=cell)
        elif is_command(title):
            found.options.update(settings_of(cell))
        elif is_seen:
            found.readings[title.lower()] = cell if value is None else value
        else:
            found.settings[setting_name(title)] = cell if value is None else value
    return replace(found, under=frozenset(under))


def _tested(titles: Sequence[str], row: Sequence[str]) -> str | None:
    """Return what the column `test` of llama-bench says of a row; None where there is none."""
    cells = (cell.strip() for title, cell in zip(titles, row, strict=True) if title == "test")
    return next(cells, None)


def _with_options(rows: list[RunRow]) -> list[RunRow]:
    """Take options as settings; a run that was not given one of them had its default."""
    names = {name for row in rows for name in row.options}
    for row in rows:
        for name in sorted(names):
            row.settings.setdefault(name, row.options.get(name, DEFAULT))
    return rows
