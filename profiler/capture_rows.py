"""Put rows into an open capture file, in one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import msgspec

from stallscope.profiler.capture import Event
from stallscope.profiler.capture_schema import TABLES

# Ten times as fast as json, and a run writes two events a step; what is not a number becomes null.
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


def write_rows(db: sqlite3.Connection, rows: Sequence[Any]) -> None:
    """Write all rows or, with the error of the first that cannot be written, none."""
    batches: dict[type, list[Any]] = defaultdict(list)
    for row in rows:
        batches[type(row)].append(row)
    if not batches:
        return
    with _transaction(db):
        for kind, batch in batches.items():
            # sqlite3 reads a plain tuple faster than a named one.
            values = map(_event_values if kind is Event else tuple, batch)
            db.executemany(_INSERT[kind], values)


def write_singly(db: sqlite3.Connection, rows: Sequence[Any]) -> str | None:
    """Write every row that can be written; return what is wrong with the first that cannot."""
    wrong = None
    with _transaction(db):
        for row in rows:
            try:
                values = _event_values(row) if type(row) is Event else tuple(row)
                db.execute(_INSERT[type(row)], values)
            except sqlite3.OperationalError:
                raise
            except Exception as error:
                wrong = wrong or f"{error!r} in {row!r:.200}"
    return wrong


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
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # a full disk may have rolled back already
            db.execute("ROLLBACK")
        raise
