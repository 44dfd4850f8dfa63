"""Read a table of runs that somebody wrote down: settings and figures, one run a line."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.regular_file import check_readable
from stallscope.profiler.text_lines import decoded

MOST_BYTES = 1 << 22
_NAME = ("name", "run")
# "tok/s", "pages/s", "output_tokens_per_s"; "tpot_ms", "step (ms)", "ttft_s".
_RATE = re.compile(r"(?P<what>\w[\w ]*?)\s*(?:/\s*s|_per_s|_per_second)", re.IGNORECASE)
_TIME = re.compile(
    r"(?P<what>\w[\w ]*?)(?:_(?P<u>s|ms|us)|\s*\((?P<v>s|ms|us|µs)\))", re.IGNORECASE
)
_SCALE = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
_TOKENS = {"tok": "output_tokens_per_s", "tokens": "output_tokens_per_s"}
NEEDED = (
    "a table of runs has a header of settings and figures, a figure's column ending in _per_s, /s, "
    "_ms or _s: threads,tok/s"
)


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as written down; figures are rates per second, or seconds (`is_time`)."""

    name: str
    settings: dict[str, float | str]
    figures: dict[str, tuple[float, bool]]


def has_run_table(text: str) -> bool:
    """Tell whether a table of runs begins here: a header with a figure, and a line below it."""
    rows = [row for row in csv.reader(text.splitlines()[:2], dialect=_dialect(text)) if row]
    if len(rows) < 2 or len(rows[0]) < 2 or len(rows[1]) != len(rows[0]):
        return False
    return any(_figure(title) for title in rows[0])


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
        rows = [row for row in csv.reader(text.splitlines(), dialect=_dialect(text)) if any(row)]
    except csv.Error as error:
        raise InputError(f"{path}: {error}; {NEEDED}") from error
    titles = [title.strip() for title in rows[0]]
    if len(set(titles)) < len(titles):
        raise InputError(f"{path}: two columns have one name; {NEEDED}")
    return [_row(path, number, titles, row) for number, row in enumerate(rows[1:], 2)]


def _dialect(text: str) -> type[csv.Dialect]:
    class Found(csv.excel):
        delimiter = max(",;\t", key=text.split("\n", 1)[0].count)

    return Found


def _row(path: Path, number: int, titles: Sequence[str], row: Sequence[str]) -> RunRow:
    if len(row) != len(titles):
        raise InputError(f"{path}, line {number}: {len(row)} values under {len(titles)} columns")
    name, settings, figures = f"line {number}", {}, {}
    for title, cell in zip(titles, (cell.strip() for cell in row), strict=True):
        found = _figure(title)
        if not cell:
            continue
        if found is not None:
            value = _number(cell)
            if value is None or value <= 0:
                raise InputError(
                    f"{path}, line {number}: {title} is {cell!r}; leave it empty if not known"
                )
            figures[found[0]] = (value * found[1], found[2])
        elif title.lower() in _NAME:
            name = cell
        else:
            value = _number(cell)
            settings[title.lower()] = cell if value is None else value
    return RunRow(name, settings, figures)


def _figure(title: str) -> tuple[str, float, bool] | None:
    """Return a figure's name, its scale to per second or seconds, and whether it is a time."""
    plain = title.strip()
    rate = _RATE.fullmatch(plain)
    if rate is not None:
        what = rate["what"].strip().lower().replace(" ", "_")
        return _TOKENS.get(what, f"{what}_per_s"), 1.0, False
    time = _TIME.fullmatch(plain)
    if time is not None:
        what = time["what"].strip().lower().replace(" ", "_")
        return f"{what}_s", _SCALE[(time["u"] or time["v"]).lower()], True
    return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
