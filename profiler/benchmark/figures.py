"""Figures of foreign JSON, as far as they are figures: what is none is not told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stallscope.profiler.checked_json import LARGEST, LARGEST_NUMBER
from stallscope.profiler.trial import Spread

Row = Mapping[str, Any]
MS = 1e-3


def number(row: Row, *names: str) -> float | None:
    """Return the first that is a finite number of 0 or more, below any real figure's bound."""
    for name in names:
        value = row.get(name)
        if isinstance(value, str):
            value = _of_text(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if 0 <= value <= LARGEST_NUMBER:
            return float(value)
    return None


def positive(row: Row, *names: str) -> float | None:
    """Return the first such number; 0 is what tools write where nothing was measured."""
    return next((v for name in names if (v := number(row, name))), None)


def count(row: Row, *names: str) -> int | None:
    """Return the first whole number of 0 or more."""
    found = number(row, *names)
    return int(found) if found is not None and found <= LARGEST and found == int(found) else None


def load(clients: int | None, rate_per_s: float | None) -> dict[str, Any]:
    """Return the fields of a load: beside a rate, clients only bound what is in flight."""
    if rate_per_s is None:
        return {"concurrency": clients or None}
    return {"rate_per_s": rate_per_s, "cap": clients or None}


def text(row: Row, *names: str) -> str | None:
    """Return the first text that says something."""
    values = (row.get(name) for name in names)
    return next((v.strip() for v in values if isinstance(v, str) and v.strip()), None)


def inner(row: Row, *path: str) -> Row:
    """Return the object under a path of keys, empty where there is none."""
    for name in path:
        found = row.get(name)
        row = found if isinstance(found, Mapping) else {}
    return row


def scaled(value: float | None, scale: float) -> float | None:
    """Return a value in another unit."""
    return None if value is None else value * scale


def ratio(value: float | None, by: float | None) -> float | None:
    """Return a quotient, None where a side is not told or the divisor is 0."""
    return None if value is None or not by else value / by


def spread(row: Row, names: Mapping[str, tuple[str, ...]], scale: float, n: int | None) -> Spread:
    """Read a distribution whose figures have the names given for Spread's fields."""
    found = {field: scaled(number(row, *keys), scale) for field, keys in names.items()}
    return Spread(**found, n=n)


def is_told(found: Spread) -> bool:
    """Tell whether a mean or a percentile is there and not all of them are 0."""
    return any((found.mean, found.p50, found.p90, found.p99))


def told(spreads: Mapping[str, Spread]) -> dict[str, Spread]:
    """Leave out distributions of which nothing is told."""
    return {name: found for name, found in spreads.items() if is_told(found)}


def _of_text(value: str) -> float | None:
    try:
        return float(value.replace(",", ""))
    except ValueError:
        return None
