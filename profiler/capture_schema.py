"""The capture file's tables, derived from the row types: columns, dtypes and SQL."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

from stallscope.profiler.capture import (
    DeviceSample,
    EngineSample,
    Event,
    KernelSummary,
    Request,
    Source,
    Step,
    Token,
)

APPLICATION_ID = 0x5354_4C53  # "STLS"
USER_VERSION = 2  # raised whenever a column is added
JOURNAL_VERSION = 4  # of a file with notes that are not in their tables yet

Row = Step | Request | Token | DeviceSample | EngineSample | Event | KernelSummary | Source

_RENAMED = {"data": "data_json", "kernel_class": "class", "launches": "count"}
_DTYPES = {int: "Int64", float: "Float64", bool: "boolean", str: "string", Mapping: "string"}
_SQL_TYPES = {"Int64": "INTEGER", "Float64": "REAL", "boolean": "INTEGER", "string": "TEXT"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the file, the row's field behind it, and its pandas dtype."""

    name: str
    field: str
    dtype: str
    nullable: bool

    @property
    def sql_type(self) -> str:
        return _SQL_TYPES[self.dtype]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the file; `attribute` is its place in Capture, `key` makes a put replace."""

    name: str
    attribute: str
    row_type: type[Row]
    columns: tuple[Column, ...]
    order_by: str
    key: str | None = None

    @property
    def create_sql(self) -> str:
        return f"CREATE TABLE {self.name} ({', '.join(map(self._declare, self.columns))})"

    @property
    def insert_sql(self) -> str:
        names = ", ".join(f'"{column.name}"' for column in self.columns)
        marks = ", ".join("?" * len(self.columns))
        return f"INSERT OR REPLACE INTO {self.name} ({names}) VALUES ({marks})"

    def _declare(self, column: Column) -> str:
        key = " PRIMARY KEY" if column.name == self.key else ""
        null = "" if column.nullable else " NOT NULL"
        return f'"{column.name}" {column.sql_type}{key}{null}'


def _column(field: str, hint: Any) -> Column:
    options = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kind = next(option for option in options if option is not types.NoneType)
    dtype = _DTYPES[get_origin(kind) or kind]  # a mapping travels as JSON text
    return Column(_RENAMED.get(field, field), field, dtype, types.NoneType in options)


def _table(row_type: type[Row], name: str, order_by: str, **options: str) -> Table:
    hints = get_type_hints(row_type)
    columns = tuple(_column(name, hints[name]) for name in row_type._fields)
    attribute = options.get("attribute", name)
    return Table(name, attribute, row_type, columns, order_by, options.get("key"))


TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        _table(Source, "sources", "id", key="id"),
        _table(Step, "steps", "id, rank"),
        _table(Request, "requests", "id", key="id"),
        _table(Token, "tokens", "t_ns, rowid"),
        _table(DeviceSample, "device_samples", "t_ns, rowid"),
        _table(EngineSample, "engine_samples", "t_ns, rowid"),
        _table(Event, "events", "t_ns, rowid"),
        _table(KernelSummary, "kernel_summary", "rowid", attribute="kernels"),
    )
}
META_SQL = "CREATE TABLE meta (key TEXT PRIMARY KEY NOT NULL, value_json TEXT NOT NULL)"
