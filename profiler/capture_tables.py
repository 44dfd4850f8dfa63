"""Read one table of a capture file into rows, checked once against the row's types."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from stallscope.profiler.capture_schema import Column, Table

_STORED_AS = {
    "Int64": ("integer",),
    "Float64": ("real", "integer"),  # finite
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
    return tuple(
        table.row_type(*_converted(row, converters, table, number))
        for number, row in enumerate(rows, 1)
    )


def _expression(column: Column, present: set[str]) -> str:
    if column.name in present:
        return f'"{column.name}"'
    if column.nullable:
        return f'NULL AS "{column.name}"'
    raise ValueError(f"column {column.name} is missing")


def _check_types(db: sqlite3.Connection, table: Table, present: set[str]) -> None:
    tests = {c.name: _misfit(c) for c in table.columns if c.name in present}
    wrong = f"SELECT rowid FROM {table.name} WHERE {' OR '.join(tests.values())} LIMIT 1"
    found = db.execute(wrong).fetchone()
    if found is None:
        return
    for column in table.columns:
        named = f'SELECT typeof("{column.name}"), "{column.name}" FROM {table.name}'
        test = tests.get(column.name, "FALSE")
        row = db.execute(f"{named} WHERE rowid = ? AND ({test})", found).fetchone()
        if row is not None:
            holds = "nothing" if row[1] is None else f"{row[0]} {row[1]!r:.40}"
            belongs = _STORED_AS[column.dtype][0]
            raise ValueError(
                f"table {table.name}, row {found[0]}: {column.name} holds {holds}, where "
                f"{'finite ' if row[0] == belongs else ''}{belongs} belongs"
            )


def _misfit(column: Column) -> str:
    allowed = _STORED_AS[column.dtype] + (("null",) if column.nullable else ())
    listed = ", ".join(f"'{name}'" for name in allowed)
    is_other = f'typeof("{column.name}") NOT IN ({listed})'
    is_infinite = f'OR abs("{column.name}") = 9e999' if column.dtype == "Float64" else ""
    return f"({is_other} {is_infinite})"


def _converter(column: Column) -> Callable[[Any], Any] | None:
    if column.dtype == "boolean":
        return bool
    if column.field == "data":
        return event_data
    return None


def event_data(text: str) -> dict[str, Any]:
    """Return an event's details from their JSON; ValueError says what is none."""
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("an event's data is not a mapping")
    return data


def _converted(
    row: tuple[Any, ...],
    converters: list[tuple[int, Callable[[Any], Any]]],
    table: Table,
    number: int,
) -> list[Any]:
    values = list(row)
    for place, convert in converters:
        if values[place] is not None:
            try:
                values[place] = convert(values[place])
            except (ValueError, RecursionError) as error:
                column = table.columns[place].name
                raise ValueError(
                    f"table {table.name}, row {number} by {table.order_by}: {column}: {error}"
                ) from error
    return values
