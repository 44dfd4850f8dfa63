"""Read one table of a capture file into rows, checked once against the row's types."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from stallscope.profiler.capture_schema import Column, Table

_STORED_AS = {
    "Int64": ("integer",),
    "Float64": ("real", "integer"),
    "boolean": ("integer",),
    "string": ("text",),
}


def read_table(db: sqlite3.Connection, table: Table) -> tuple[Any, ...]:
    """Return the table's rows; ValueError says what does not fit.

    A column that a later version added is read as None from an older file.
    """
    present = {row[1] for row in db.execute(f"PRAGMA table_info({table.name})")}
    if not present:
        raise ValueError(f"no such table: {table.name}")
    _check_types(db, table, present)
    selected = ", ".join(_expression(column, present) for column in table.columns)
    rows = db.execute(f"SELECT {selected} FROM {table.name} ORDER BY {table.order_by}")
    converters = [
        (place, convert)
        for place, column in enumerate(table.columns)
        if (convert := _converter(column)) is not None
    ]
    if not converters:
        return tuple(table.row_type(*row) for row in rows)
    return tuple(table.row_type(*_converted(row, converters)) for row in rows)


def _expression(column: Column, present: set[str]) -> str:
    if column.name in present:
        return f'"{column.name}"'
    if column.nullable:
        return f'NULL AS "{column.name}"'
    raise ValueError(f"column {column.name} is missing")


def _check_types(db: sqlite3.Connection, table: Table, present: set[str]) -> None:
    tests = []
    for column in table.columns:
        if column.name in present:
            allowed = _STORED_AS[column.dtype] + (("null",) if column.nullable else ())
            listed = ", ".join(f"'{name}'" for name in allowed)
            tests.append(f'typeof("{column.name}") NOT IN ({listed})')
    if db.execute(f"SELECT 1 FROM {table.name} WHERE {' OR '.join(tests)} LIMIT 1").fetchone():
        raise ValueError(f"table {table.name} holds a value of the wrong type")


def _converter(column: Column) -> Callable[[Any], Any] | None:
    if column.dtype == "boolean":
        return bool
    if column.field == "data":
        return _mapping
    return None


def _mapping(text: str) -> dict[str, Any]:
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("an event's data is not a mapping")
    return data


def _converted(
    row: tuple[Any, ...], converters: list[tuple[int, Callable[[Any], Any]]]
) -> list[Any]:
    values = list(row)
    for place, convert in converters:
        if values[place] is not None:
            values[place] = convert(values[place])
    return values
