"""The journal of a capture in the making: notes go in packed, and rows are made of them at its end.

A step's rows in their tables cost the writer's thread 13 µs beside a decoding model, its notes in
one blob with those of some hundred other steps less than one. So the tables get them when the run
is over, and whoever reads a capture before that (it was cut, or still goes on) makes them himself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from stallscope.profiler.capture_rows import insert_rows, transaction
from stallscope.profiler.capture_schema import JOURNAL_VERSION, USER_VERSION
from stallscope.profiler.notes import Note, packed, unpacked

_BLOBS = 4  # of some hundred notes each, 5,000 in a burst: a transaction of the move to the tables


def append(db: sqlite3.Connection, notes: Sequence[Note]) -> None:
    """Put notes down; without a transaction of the caller's an empty journal may be left."""
    blob = packed(notes)
    try:
        db.execute("INSERT INTO journal (notes) VALUES (?)", (blob,))
    except sqlite3.OperationalError:
        if has_journal(db):
            raise
        db.execute("CREATE TABLE journal (id INTEGER PRIMARY KEY, notes BLOB NOT NULL)")
        db.execute(f"PRAGMA user_version={JOURNAL_VERSION}")
        db.execute("INSERT INTO journal (notes) VALUES (?)", (blob,))


def has_journal(db: sqlite3.Connection) -> bool:
    """Say whether notes were put down and not yet moved."""
    found = db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'journal'")
    return found.fetchone() is not None


def move_to_tables(db: sqlite3.Connection) -> None:
    """Make rows of all notes. Killed on the way, each is in its table or still in the journal."""
    if not has_journal(db):
        return
    while blobs := db.execute(
        f"SELECT id, notes FROM journal ORDER BY id LIMIT {_BLOBS}"
    ).fetchall():
        with transaction(db):
            insert_rows(db, [row for _, blob in blobs for row in unpacked(blob)])
            db.executemany("DELETE FROM journal WHERE id = ?", [(number,) for number, _ in blobs])
    with transaction(db):
        db.execute("DROP TABLE journal")
        db.execute(f"PRAGMA user_version={USER_VERSION}")
