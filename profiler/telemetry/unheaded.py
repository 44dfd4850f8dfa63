"""Rows of nvidia-smi's CSV without their header: what units and forms of the cells tell.

With noheader the queries are not said, but without nounits most cells carry a unit. Of percentages
the first is taken for utilization.gpu and a second for utilization.memory, as they are queried; of
memory what never changes and is never below the other is the total; likewise with power.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from stallscope.profiler.telemetry.moments import wall_ns
from stallscope.profiler.telemetry.query_csv import split_cells

_FORMS = (
    ("uuid", re.compile(r"(GPU|MIG)-[0-9a-f-]{8,}")),
    ("pci.bus_id", re.compile(r"[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.\d", re.IGNORECASE)),
    ("%", re.compile(r"\d+ %")),
    ("MiB", re.compile(r"\d+ MiB")),
    ("W", re.compile(r"\d+([.,]\d+)? W")),
    ("MHz", re.compile(r"\d+ MHz")),
    ("pstate", re.compile(r"P\d{1,2}")),
    ("name", re.compile(r"(NVIDIA|GeForce|Tesla|Quadro|GRID) .*", re.IGNORECASE)),
)
_UNITS = ("%", "MiB", "W")
_STAMP = re.compile(r"\d{4}/\d{2}/\d{2} \d{2}:\d{2}:\d{2}\.\d{3}, ")


def is_unheaded(lines: Sequence[str]) -> bool:
    """Tell whether these are rows of nvidia-smi's, by a unit in two cells or its form of time."""
    rows = [line.strip() for line in lines if line.strip()][:20]
    return bool(rows) and all(_is_row(line) for line in rows[:-1] or rows)


def _is_row(line: str) -> bool:
    forms = [_form(cell) for cell in split_cells(line, ", ")]
    return sum(form in _UNITS for form in forms) >= 2 or _STAMP.match(line) is not None


def header_of(lines: Sequence[str]) -> str | None:
    """Return the header that the rows seem to have had, with "x" for what is not told."""
    rows = [split_cells(line, ", ") for line in lines if line.strip()]
    width = len(rows[0]) if rows else 0
    rows = [row for row in rows if len(row) == width]
    columns = list(zip(*rows, strict=True))
    forms = [_form(column[0]) for column in columns]
    names = [form if form not in (*_UNITS, "MHz") and form else "x" for form in forms]
    for unit, larger, smaller in (
        ("MiB", "memory.total", "memory.used"),
        ("W", "power.limit", "power.draw"),
    ):
        for place, name in _told(columns, forms, unit, larger, smaller):
            names[place] = name
    percents = [i for i, form in enumerate(forms) if form == "%"]
    for place, name in zip(percents[:2], ("utilization.gpu", "utilization.memory"), strict=False):
        names[place] = name
    return ", ".join(names) if any("." in name for name in names) else None


def _form(cell: str) -> str:
    if wall_ns(cell) is not None:
        return "timestamp"
    return next((name for name, form in _FORMS if form.fullmatch(cell)), "")


def _told(
    columns: Sequence[Sequence[str]], forms: Sequence[str], unit: str, larger: str, smaller: str
) -> list[tuple[int, str]]:
    """Tell a limit from what stays below it; one column alone is what changes."""
    places = [i for i, form in enumerate(forms) if form == unit]
    if len(places) == 1:
        return [(places[0], smaller)]
    if len(places) != 2:
        return []
    first, second = ([_number(cell) for cell in columns[i]] for i in places)
    if all(a >= b for a, b in zip(first, second, strict=True)) and len(set(first)) == 1:
        return [(places[0], larger), (places[1], smaller)]
    if all(b >= a for a, b in zip(first, second, strict=True)) and len(set(second)) == 1:
        return [(places[0], smaller), (places[1], larger)]
    return []


def _number(cell: str) -> float:
    digits = re.match(r"[\d.,]+", cell)
    return float(digits[0].replace(",", ".")) if digits and digits[0].count(".") < 2 else 0.0
