"""Read the rows of a capture that has notes in its journal: it was cut, or still goes on."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from stallscope.profiler.capture import DeviceSample, EngineSample, Event, Step, Token
from stallscope.profiler.capture_rows import EncodedEvent
from stallscope.profiler.capture_schema import TABLES
from stallscope.profiler.capture_tables import event_data
from stallscope.profiler.journal import has_journal
from stallscope.profiler.notes import NotedRow, unpacked

_INTEGERS = range(-(2**63), 2**63)  # what SQLite holds
# As the tables' order_by; among equals what is in the table comes first, as at the end of a run.
_ORDER: Mapping[type, Callable[[Any], Any]] = {
    Step: itemgetter(0, 1),
    Token: itemgetter(1),
    Event: itemgetter(0),
    EngineSample: itemgetter(0),
    DeviceSample: itemgetter(0),
}


def with_noted(db: sqlite3.Connection, rows: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """Return the tables' rows, by attribute of Capture, together with those of the journal."""
    merged = dict(rows)
    noted: dict[type, list[Any]] = defaultdict(list)
    for row in _noted(db):
        noted[type(row)].append(row)
    for table in TABLES.values():
        if table.row_type in noted:
            both = (*rows[table.attribute], *noted[table.row_type])
            merged[table.attribute] = tuple(sorted(both, key=_ORDER[table.row_type]))
    return merged


def _noted(db: sqlite3.Connection) -> Iterator[NotedRow]:
    if not has_journal(db):
        return
    for number, blob in db.execute("SELECT id, notes FROM journal ORDER BY id"):
        try:
            for row in unpacked(blob if isinstance(blob, bytes) else b""):
                if any(type(value) is int and value not in _INTEGERS for value in row):
                    raise ValueError(f"a number of more than 64 bits in {row!r:.100}")
                if isinstance(row, EncodedEvent):
                    yield Event(*row[:3], event_data(row.data_json))
                else:
                    yield row
        except ValueError as error:
            raise ValueError(f"table journal, row {number}: {error}") from error
