"""Files that are no export, or no whole one: one line that says what to do."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from nsys_exports import NEW, PID, strings, write

from stallscope.errors import InputError
from stallscope.profiler.nsys.sqlite_reader import read_nsys_sqlite


def export(path: Path, kernels: int = 3_000, first: int = 0) -> Path:
    rows = {
        "StringIds": strings("k"),
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            {"start": first + 100 * i, "end": first + 100 * i + 50, "globalPid": PID,
             "demangledName": 100}
            for i in range(kernels)
        ],
    }  # fmt: skip
    return write(path, rows, NEW)


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as error:
        read_nsys_sqlite(path)
    line = str(error.value)
    assert str(path) in line
    assert "\n" not in line
    return line


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_cut_file(tmp_path: Path, share: float) -> None:
    path = export(tmp_path / "x.sqlite")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    assert f"of {len(data):,}; copy or export it again" in refusal(path)


def test_a_file_that_says_it_is_shorter_than_its_tables_are(tmp_path: Path) -> None:
    """Its header counts the pages that are left, so only the tables' trees tell."""
    path = export(tmp_path / "x.sqlite")
    data = bytearray(path.read_bytes())
    half = len(data) // 4096 // 2
    data[28:32] = half.to_bytes(4)
    path.write_bytes(data[: half * 4096])
    assert "damaged or cut" in refusal(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\xff\xd8\xff\xe0 a photograph", "is not an SQLite file"),
        (b"SQLite format 3\x00 and no more", "damaged SQLite header"),
        (b"SQLite format 3\x00" + bytes(84), "damaged SQLite header"),
    ],
)
def test_files_of_other_kinds(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(content)
    assert said in refusal(path)


def test_a_file_that_is_not_there_and_a_folder(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "none.sqlite")
    assert "cannot be read" in refusal(tmp_path)


def test_an_sqlite_file_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")
        db.commit()
    assert "not an export of nsys" in refusal(path)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("CUPTI_ACTIVITY_KIND_KERNEL", "start", "'yesterday'"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", "correlationId", "1.25"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "nameId", "'cudaLaunchKernel'"),
        ("NVTX_EVENTS", "start", "'yesterday'"),
        ("NVTX_EVENTS", "end", "1.25"),
        ("GPU_METRICS", "value", "'high'"),
    ],
)
def test_values_of_wrong_types(tmp_path: Path, table: str, column: str, value: str) -> None:
    path = write(tmp_path / "x.sqlite", {table: [{"eventType": 59}]})
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"UPDATE {table} SET {column} = {value}")
        db.commit()
    line = refusal(path)
    assert table in line
    assert "no whole number" in line


def test_a_view_and_a_computed_column_are_not_run(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start, 2 AS end")
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, "
                   "bytes INTEGER AS (start + 1))")  # fmt: skip
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (1, 2)")
        db.commit()
    trace = read_nsys_sqlite(path)
    assert [f.what for f in trace.findings] == ["no_kernel_table", "changed_schema"]
    assert "CUPTI_ACTIVITY_KIND_MEMSET lacks the columns start, end" in trace.findings[1].reason
    assert len(trace.copies) == 0


def test_rows_in_a_write_ahead_log_are_not_lost_in_silence(tmp_path: Path) -> None:
    """Two kernels are in the file, a third only in the log: refused, until the log is merged."""
    path = export(tmp_path / "x.sqlite", 2)
    with closing(sqlite3.connect(path)) as writer:
        assert writer.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
        writer.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM "
                       "CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1")  # fmt: skip
        writer.commit()
        line = refusal(path)
        assert "rows are still in x.sqlite-wal" in line
        assert f"sqlite3 {path} 'PRAGMA wal_checkpoint(TRUNCATE)'" in line
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert len(read_nsys_sqlite(path).kernels) == 3
    assert len(read_nsys_sqlite(path).kernels) == 3


def test_a_change_that_was_broken_off_is_refused(tmp_path: Path) -> None:
    """A writer that is killed in a large change leaves half of it in the file."""
    path = export(tmp_path / "x.sqlite", 3_000)
    before = path.read_bytes()
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA cache_size=1")
        writer.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start + 99")
        assert path.read_bytes() != before
        assert "x.sqlite-journal is left" in refusal(path)
        writer.rollback()
    assert len(read_nsys_sqlite(path).kernels) == 3_000


def test_the_files_folder_is_left_as_it_was(tmp_path: Path) -> None:
    path = export(tmp_path / "x.sqlite", 10)
    before = path.read_bytes()
    read_nsys_sqlite(path)
    assert [p.name for p in tmp_path.iterdir()] == ["x.sqlite"]
    assert path.read_bytes() == before
