"""An nsys SQLite export, open for reading: which tables and columns it has, and their rows.

The file is opened read-only and immutable, with trusted_schema off: nothing in it is run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stallscope.errors import InputError
from stallscope.profiler.nsys.page_file import PageFile, open_pages
from stallscope.profiler.nsys.unmerged import check_merged

STRINGS = "StringIds"
_KEYS_AT_ONCE = 500  # below SQLite's limit on parameters of one statement


@dataclass(frozen=True, slots=True)
class Table:
    """A stored table: the page of its root, and the place of each plain column in its records.

    `key` is a column that may be the row's own number, which the record then does not hold.
    """

    name: str
    root: int
    places: Mapping[str, int]
    key: str | None = None

    def first(self, *names: str) -> str | None:
        """Return the first of `names` that is a column here."""
        return next((name for name in names if name in self.places), None)


@dataclass(frozen=True, slots=True)
class Database:
    """An open export; `tables` by name, those without rows included."""

    path: Path
    pages: PageFile
    db: sqlite3.Connection
    tables: Mapping[str, Table]

    def rows(self, table: str, columns: Sequence[str], rest: str = "") -> Iterator[tuple[Any, ...]]:
        """Yield the columns' values; where the table lacks a column, or is absent, None or none."""
        found = self.tables.get(table)
        if found is None:
            return
        wanted = ", ".join(_quoted(c) if c in found.places else "NULL" for c in columns)
        yield from self.db.execute(f"SELECT {wanted} FROM {_quoted(table)} {rest}")

    def has_rows(self, table: str) -> bool:
        """Say whether a table is there and not empty."""
        if table not in self.tables:
            return False
        query = f"SELECT 1 FROM {_quoted(table)} LIMIT 1"
        return self.db.execute(query).fetchone() is not None

    @property
    def has_texts(self) -> bool:
        """Say whether the file has the table of texts that names are looked up in."""
        return {"id", "value"} <= self.tables.get(STRINGS, Table(STRINGS, 0, {})).places.keys()

    def texts(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the text of each id that StringIds has."""
        found: dict[int, str] = {}
        if not self.has_texts:
            return found
        for start in range(0, len(ids), _KEYS_AT_ONCE):
            keys = ids[start : start + _KEYS_AT_ONCE]
            marks = ", ".join("?" * len(keys))
            query = f"SELECT id, value FROM StringIds WHERE id IN ({marks})"
            found.update((int(key), str(text)) for key, text in self.db.execute(query, keys))
        return found


@contextmanager
def open_database(path: Path) -> Iterator[Database]:
    """Open an export. InputError, one line, where the file is cut, damaged or no database, or
    where a file beside it holds a part of it.
    """
    check_merged(path)
    with open_pages(path) as pages:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as db:
                db.execute("PRAGMA trusted_schema=OFF")
                db.text_factory = _text
                yield Database(path, pages, db, _tables(db))
        except (sqlite3.Error, UnicodeDecodeError) as error:  # messages that quote broken bytes
            raise InputError(
                f"{path} is damaged or cut ({error}); copy or export it again"
            ) from error


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _tables(db: sqlite3.Connection) -> dict[str, Table]:
    query = (
        "SELECT name, rootpage FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 "
        "AND typeof(name) = 'text' AND typeof(rootpage) = 'integer'"
    )
    return {name: _table(db, name, root) for name, root in db.execute(query).fetchall()}


def _table(db: sqlite3.Connection, name: str, root: int) -> Table:
    """Describe a table; of one with computed columns none is known, as those would be run."""
    columns = db.execute(f"PRAGMA table_xinfo({_quoted(name)})").fetchall()
    if any(hidden for *_, hidden in columns):
        return Table(name, root, {})
    key = next((column for _, column, _, _, _, part_of_key, _ in columns if part_of_key), None)
    return Table(name, root, {column: place for place, column, *_ in columns}, key)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
