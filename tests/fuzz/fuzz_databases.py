"""SQLite files as seeds, small enough to be whole in 16 KiB, and damage within their tables."""

from __future__ import annotations

import random
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path

from fuzz_damage import MOST_BYTES, damaged

_VALUES = (
    *(None, -1, 0, 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 0.5, -0.5, 1e308, 1e-320),
    *(float("inf"), "", "x", "1", "nan", "{}", "[]", "null", '{"a": 1e999}', b"\0", b"\xff\xfe"),
)
_ROWS = 12  # of each table, at most


def small(path: Path, tables: Iterable[str] = ()) -> bytes:
    """Return a database with the first rows of its tables (or of those named), in small pages.

    Tables are plain in the copy: no constraint stands in the way of damage.
    """
    copies = (_copy(path, tables, rows) for rows in range(_ROWS, 0, -1))
    return next(copy for copy in copies if len(copy) <= MOST_BYTES)


def _copy(path: Path, tables: Iterable[str], most_rows: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder, closing(sqlite3.connect(path)) as old:
        copy = Path(folder) / "copy"
        with closing(sqlite3.connect(copy)) as new:
            new.execute("PRAGMA page_size=512")
            for pragma in ("application_id", "user_version"):
                new.execute(f"PRAGMA {pragma}={old.execute(f'PRAGMA {pragma}').fetchone()[0]}")
            for name, columns in _tables(old):
                if not tables or name in tables:
                    new.execute(f'CREATE TABLE "{name}" ({", ".join(columns)})')
                    rows = old.execute(f'SELECT * FROM "{name}" LIMIT {most_rows}').fetchall()
                    marks = ", ".join("?" * len(columns))
                    new.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)
            new.commit()
        return copy.read_bytes()


def damaged_database(content: bytes, rng: random.Random) -> bytes:
    """Return a database of which bytes are wrong, or whose tables and cells are not the tool's."""
    if rng.random() < 0.3:
        return damaged(content, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "database"
        path.write_bytes(content)
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA synchronous=OFF")
            for _ in range(rng.randint(1, 4)):
                names = [name for name, _ in _tables(db)]
                if names:
                    with suppress(sqlite3.Error):  # what SQLite itself refuses is no damage
                        _damage(db, rng.choice(names), rng)
            db.commit()
        return path.read_bytes()[:MOST_BYTES]


def _damage(db: sqlite3.Connection, table: str, rng: random.Random) -> None:
    columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
    column, accident = rng.choice(columns), rng.randrange(12)
    if accident < 6:
        where = "" if accident == 0 else f"WHERE rowid = {rng.randint(1, _ROWS)}"
        value = rng.choice(_VALUES)
        db.execute(f'UPDATE "{table}" SET "{column}" = ? {where}', (value,))
    elif accident == 6:
        other = rng.choice(columns)
        db.execute(f'UPDATE "{table}" SET "{column}" = "{other}"')
    elif accident == 7:
        db.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
    elif accident == 8:
        db.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{column}_"')
    elif accident == 9:
        db.execute(f'DELETE FROM "{table}" WHERE rowid >= {rng.randint(1, _ROWS)}')
    elif accident == 10:
        db.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}"')
    else:
        db.execute(f'DROP TABLE "{table}"')
        if rng.random() < 0.5:
            db.execute(f'CREATE VIEW "{table}" AS SELECT 1 AS "{column}"')


def _tables(db: sqlite3.Connection) -> list[tuple[str, list[str]]]:
    """Return each table with its columns as they are declared, less their constraints."""
    names = db.execute(
        "SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    return [
        (name, [f'"{c[1]}" {c[2]}' for c in db.execute(f'PRAGMA table_info("{name}")')])
        for (name,) in names
    ]
