"""Commit what a run left in the writer's queue: notes to the journal, rows to their tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from stallscope.profiler import journal
from stallscope.profiler.capture_rows import insert_rows, transaction


def write(db: sqlite3.Connection, queued: Sequence[Any]) -> None:
    """Write all that was queued or, with the error of the first that cannot be written, nothing."""
    notes, rows = _parted(queued)
    if rows:
        with transaction(db):
            _put(db, notes, rows)
    elif notes:  # one statement, and so a transaction by itself
        journal.append(db, notes)


def write_singly(db: sqlite3.Connection, queued: Sequence[Any]) -> str | None:
    """Write what can be written; return what is wrong with the first that cannot."""
    wrong = None
    with transaction(db):
        for one in queued:
            try:
                _put(db, *_parted((one,)))
            except sqlite3.OperationalError:
                raise
            except Exception as error:
                wrong = wrong or f"{error!r} in {one!r:.200}"
    return wrong


def _put(db: sqlite3.Connection, notes: Sequence[Any], rows: Sequence[Any]) -> None:
    if notes:
        journal.append(db, notes)
    if rows:
        insert_rows(db, rows)


def _parted(queued: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Tell notes, which are plain tuples, from rows."""
    notes: list[Any] = []
    rows: list[Any] = []
    for one in queued:
        (notes if type(one) is tuple else rows).append(one)
    return notes, rows
