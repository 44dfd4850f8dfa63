"""Put rows into the tables of an open capture file."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import msgspec

from stallscope.profiler.capture import Event
from stallscope.profiler.capture_schema import TABLES

# Ten times as fast as json, and a run has two events a step; what is not a number becomes null.
_encode = msgspec.json.Encoder().encode


class EncodedEvent(NamedTuple):
    """An event whose data are JSON already."""

    t_ns: int
    kind: str
    request: int | None
    data_json: str


class MetaRow(NamedTuple):
    """A fact about the run."""

    key: str
    value_json: str


_INSERT: dict[type, str] = {table.row_type: table.insert_sql for table in TABLES.values()}
_INSERT[EncodedEvent] = TABLES["events"].insert_sql
_INSERT[MetaRow] = "INSERT OR REPLACE INTO meta VALUES (?, ?)"


def insert_rows(db: sqlite3.Connection, rows: Iterable[Any]) -> None:
    """Insert rows of any tables, within the caller's transaction."""
    batches: dict[type, list[Any]] = defaultdict(list)
    for row in rows:
        batches[type(row)].append(row)
    for kind, batch in batches.items():
        # sqlite3 reads a plain tuple faster than a named one.
        values = map(_event_values if kind is Event else tuple, batch)
        db.executemany(_INSERT[kind], values)


def encoded(data: Mapping[str, Any]) -> str:
    """Return an event's data as JSON. TypeError or ValueError say what is none."""
    try:
        return _encode(data).decode()
    except (TypeError, OverflowError, UnicodeEncodeError):
        # A broken file name holds half a surrogate pair, a number may be longer than 64 bits.
        return json.dumps(dict(data))


def _event_values(row: Event) -> tuple[object, ...]:
    return row.t_ns, row.kind, row.request, encoded(row.data)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit what is done within, or nothing of it where that fails."""
    db.execute("BEGIN")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # a full disk may have rolled back already
            db.execute("ROLLBACK")
        raise
