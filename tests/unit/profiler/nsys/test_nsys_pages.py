"""Columns decoded from pages against the same columns read through SQLite."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallscope.errors import InputError
from stallscope.profiler.nsys import columns as reading
from stallscope.profiler.nsys.columns import from_pages, from_sqlite, read_columns
from stallscope.profiler.nsys.database import open_database
from stallscope.profiler.nsys.growing import Coded, Kind
from stallscope.profiler.nsys.page_file import Irregular
from stallscope.profiler.nsys.page_rows import MISSING, Rare

KINDS: Mapping[str, Kind] = {
    "a": "int64",
    "b": "int32",
    "c": "coded",
    "d": "float64",
    "f": "uint8",
    "far": "rare",
}
# Integers at the edges of each of SQLite's sizes, 0 and 1, which take no bytes, and NULL.
EDGES = [
    0,
    1,
    *(s * (1 << n) + d for n in (7, 15, 23, 31, 47, 63) for s in (-1, 1) for d in (-1, 0)),
]
WHOLE = st.one_of(st.none(), st.sampled_from([e for e in EDGES if -(1 << 63) < e < 1 << 63]))
ROW = st.tuples(
    WHOLE,
    WHOLE,
    st.one_of(st.none(), st.integers(0, 3)),
    st.one_of(st.none(), st.floats(allow_nan=False), st.integers(-5, 300)),
    st.text(max_size=9),
    WHOLE,
    st.one_of(st.none(), st.none(), WHOLE),
)


def plain(column: Any) -> Any:
    if isinstance(column, Coded):
        return [None if c < 0 else int(column.values[c]) for c in column.code]
    if isinstance(column, Rare):
        return list(zip(column.rows.tolist(), column.values.tolist(), strict=True))
    if column.dtype == np.float64:  # NaN is unlike itself
        return [None if np.isnan(value) else value for value in column.tolist()]
    return column.tolist()


def table(path: Path, rows: list[tuple[Any, ...]], *, page_bytes: int = 4096) -> Path:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA page_size={page_bytes}")
        db.execute("CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER, d REAL, e TEXT, f INTEGER, "
                   "far INTEGER)")  # fmt: skip
        db.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        db.commit()
    return path


def both(path: Path, kinds: Mapping[str, Kind]) -> tuple[Any, Any]:
    with open_database(path) as database:
        t = database.tables["t"]
        pages, sqlite = from_pages(database.pages, t, kinds), from_sqlite(database, t, kinds)
    return {n: plain(c) for n, c in pages.items()}, {n: plain(c) for n, c in sqlite.items()}


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, max_size=60), st.sampled_from([512, 4096, 65536]))
def test_pages_hold_what_sqlite_reads(rows: list[tuple[Any, ...]], page_bytes: int) -> None:
    kinds = {name: kind for name, kind in KINDS.items() if name != "far"}
    with tempfile.TemporaryDirectory() as folder:
        path = table(Path(folder) / "t.sqlite", rows, page_bytes=page_bytes)
        pages, sqlite = both(path, kinds)
    assert pages == sqlite
    assert pages["a"] == [MISSING if row[0] is None else row[0] for row in rows]


def test_pages_of_a_deep_tree_are_read_in_order(tmp_path: Path) -> None:
    """20,000 rows on pages of 512 bytes: three levels, rowids of one to three bytes, and each size
    of integer; of every seventh row the far column is set."""
    rows = [
        (i * 7_000_003 - 9, i % 5, i % 3, i / 8, "", i % 250, i if i % 7 == 0 else None)
        for i in range(20_000)
    ]
    pages, sqlite = both(table(tmp_path / "t.sqlite", rows, page_bytes=512), {**KINDS})
    assert pages == sqlite
    assert pages["a"] == [i * 7_000_003 - 9 for i in range(20_000)]
    assert pages["far"] == [(i, i) for i in range(0, 20_000, 7)]
    assert pages["c"] == [i % 3 for i in range(20_000)]


def test_shares_of_threads_come_together_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_LEAST_PAGES", 2)
    monkeypatch.setattr(reading, "PAGES_AT_ONCE", 3)
    monkeypatch.setattr(reading.os, "cpu_count", lambda: 4)
    # The later threads meet the codes in another order than the first.
    rows = [(i, 1, 900 - i // 10, 0.5, "", 2, 5 if i > 800 else None) for i in range(1_000)]
    pages, sqlite = both(table(tmp_path / "t.sqlite", rows, page_bytes=512), {**KINDS})
    assert pages == sqlite
    assert pages["a"] == list(range(1_000))
    assert pages["c"] == [900 - i // 10 for i in range(1_000)]
    assert pages["far"] == [(i, 5) for i in range(801, 1_000)]


def test_pages_that_lie_apart_are_gathered(tmp_path: Path) -> None:
    """Two tables that grow in turns share the file's pages in turns; the wide one leaves gaps."""
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER)")
        db.execute("CREATE TABLE wide (x BLOB)")
        for i in range(900):
            db.execute("INSERT INTO t VALUES (?, ?, ?)", (i << 40, i, 1 << 40))
            db.execute("INSERT INTO wide VALUES (zeroblob(3000))")
        db.commit()
    pages, _ = both(path, {"a": "int64", "b": "int32"})
    assert pages == {"a": [i << 40 for i in range(900)], "b": list(range(900))}


@pytest.mark.parametrize("threads", [1, 4])
def test_deleted_rows_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """The gaps in the rows' numbers leave room that no share fills."""
    monkeypatch.setattr(reading, "_LEAST_PAGES", 2)
    monkeypatch.setattr(reading.os, "cpu_count", lambda: threads)
    path = table(tmp_path / "t.sqlite", [(i, i, 0, 0.0, "", 0, None) for i in range(3_000)])
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM t WHERE a % 3 = 0 OR a BETWEEN 1000 AND 1900")
        db.commit()
    pages, sqlite = both(path, {"a": "int64"})
    assert pages == sqlite
    assert len(pages["a"]) == 2_000 - 601  # of 1000 to 1900, 300 are multiples of three


@pytest.mark.parametrize(
    "statements",
    [
        # Rows written before a column was added lack it.
        ["CREATE TABLE t (b INTEGER)", "INSERT INTO t VALUES (4)",
         "ALTER TABLE t ADD COLUMN a INTEGER DEFAULT 7", "INSERT INTO t VALUES (5, 8)"],
        # Text of 57 bytes and more has a type of two bytes.
        ["CREATE TABLE t (x TEXT, a INTEGER)",
         "INSERT INTO t VALUES (printf('%099d', 0), 7), ('', 8)"],
        # A record longer than a page goes on elsewhere.
        ["CREATE TABLE t (a INTEGER, x TEXT)",
         "INSERT INTO t VALUES (7, printf('%09999d', 0)), (8, '')"],
        # A key that is the row's own number is not stored in the record.
        ["CREATE TABLE t (a INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (7), (8)"],
        ["CREATE TABLE t (a INTEGER, b INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID",
         "INSERT INTO t VALUES (7, 1), (8, 2)"],
    ],
    ids=["added column", "long text", "long record", "key", "without rowid"],
)  # fmt: skip
def test_what_pages_do_not_give_comes_from_sqlite(tmp_path: Path, statements: list[str]) -> None:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()
    with open_database(path) as database:
        t = database.tables["t"]
        with pytest.raises(Irregular):
            from_pages(database.pages, t, {"a": "int64"})
        assert read_columns(database, t, {"a": "int64"})["a"].tolist() == [7, 8]


@pytest.mark.parametrize("value", ["'soon'", "1.5", "x'00'"])
@pytest.mark.parametrize("route", ["pages", "sqlite"])
def test_what_is_no_whole_number_is_refused(tmp_path: Path, value: str, route: str) -> None:
    path = tmp_path / "t.sqlite"
    first = "'" + "x" * 99 + "'" if route == "sqlite" else "1"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x, a INTEGER)")
        db.execute(f"INSERT INTO t VALUES ({first}, 3), (1, {value})")
        db.commit()
    with open_database(path) as database, pytest.raises(InputError, match=r"t\.a holds what is no"):
        read_columns(database, database.tables["t"], {"a": "int64"})


def test_many_layouts_are_read_value_by_value(tmp_path: Path) -> None:
    """Six columns of three sizes each: 729 layouts in 5,000 rows."""
    sizes = (1 << 6, 1 << 14, 1 << 30)
    rows = [tuple(sizes[i // 3**k % 3] + i for k in range(6)) for i in range(5_000)]
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (a, b, c, d, e, f)")
        db.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
        db.commit()
    pages, _ = both(path, {"a": "int64", "f": "int64", "c": "coded"})
    assert pages["a"] == [row[0] for row in rows]
    assert pages["f"] == [row[5] for row in rows]
    assert pages["c"] == [row[2] for row in rows]
