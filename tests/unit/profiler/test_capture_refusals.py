"""What is not a readable capture is refused in one line that says what to do."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from stallscope.errors import CaptureError, InputError
from stallscope.profiler.capture import Capture, Event, Token
from stallscope.profiler.capture_file import is_capture, read_capture
from stallscope.profiler.capture_writer import write_capture


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.sqlite"


def small_capture(path: Path) -> None:
    tokens = tuple(Token(request, request) for request in range(5000))
    write_capture(path, Capture(tokens=tokens, events=(Event(1, "admit", 1, {"a": 1}),)))


def execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(statement)


def refusal(path: Path, error: type[Exception]) -> str:
    with pytest.raises(error) as caught:
        read_capture(path)
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_file(path: Path) -> None:
    assert "cannot be read (No such file or directory)" in refusal(path, InputError)
    assert not is_capture(path)


def test_a_folder(tmp_path: Path) -> None:
    assert "cannot be read (Is a directory)" in refusal(tmp_path, InputError)
    assert not is_capture(tmp_path)


def test_an_empty_file(path: Path) -> None:
    path.touch()
    assert "is empty" in refusal(path, InputError)
    assert not is_capture(path)


def test_a_text_file(path: Path) -> None:
    path.write_text("timestamp, utilization.gpu [%]\n")
    assert "is not an SQLite file" in refusal(path, InputError)
    assert not is_capture(path)


def test_somebody_elses_sqlite_file(path: Path) -> None:
    execute(path, "CREATE TABLE steps (id INTEGER)")
    assert "an SQLite file, but not a stallscope capture" in refusal(path, InputError)
    assert not is_capture(path)


def test_a_newer_format(path: Path) -> None:
    small_capture(path)
    execute(path, "PRAGMA user_version=9")
    message = refusal(path, CaptureError)
    assert "newer stallscope (format 9, this one reads up to 4); upgrade" in message
    assert is_capture(path)


@pytest.mark.parametrize("keep", [50, 100, 4096, 20_000])
def test_a_truncated_file(path: Path, keep: int) -> None:
    small_capture(path)
    whole = path.read_bytes()
    assert len(whole) > 40_000
    path.write_bytes(whole[:keep])
    assert "truncated" in refusal(path, CaptureError)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DROP TABLE tokens", "no such table: tokens"),
        ("ALTER TABLE tokens DROP COLUMN t_ns", "column t_ns is missing"),
        (
            "UPDATE tokens SET t_ns = 'noon' WHERE rowid = 7",
            "table tokens, row 7: t_ns holds text 'noon', where integer belongs",
        ),
        (
            "UPDATE tokens SET request = 2.5 WHERE rowid = 9",
            "table tokens, row 9: request holds real 2.5, where integer belongs",
        ),
        (
            "UPDATE events SET data_json = '{'",
            "table events, row 1 by t_ns, rowid: data_json: Expecting property name",
        ),
        (
            "UPDATE events SET data_json = '[]'",
            "table events, row 1 by t_ns, rowid: data_json: an event's data is not a mapping",
        ),
        ("UPDATE meta SET value_json = '3' WHERE key = 'subject'", "subject cannot be 3"),
        ("INSERT INTO meta VALUES ('flags', '0.5')", "meta: flags is a float"),
        ("INSERT INTO meta VALUES ('trace', x'00')", "meta: a key or its value is no text"),
        (
            "INSERT INTO engine_samples VALUES (1, '0', 'waiting', 9e999)",
            "table engine_samples, row 1: value holds real inf, where finite real belongs",
        ),
    ],
)
def test_a_damaged_capture(path: Path, statement: str, reason: str) -> None:
    small_capture(path)
    execute(path, statement)
    assert reason in refusal(path, CaptureError)
