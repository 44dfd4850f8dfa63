"""Files are called what they are."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest

from stallscope.errors import InputError
from stallscope.profiler.file_kinds import InputKind, input_kind, kind_of

TABLE = "a table of runs, which stallscope compare reads"
TWICE = "a gzip file that is packed twice (gunzip it once)"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"", "an empty file"),
        (b'{"traceEvents": []}', "a JSON file"),
        (b"\n [ {}", "a JSON file"),
        (b"[]", "a JSON file"),
        (b"[build-system]\n", "a text file"),
        (b"# HELP vllm:num_requests_running\n", "a text file"),
        ("é".encode() * 3000, "a text file"),  # 4096 bytes hold 2048 whole letters
        (b"x" + "é".encode() * 3000, "a text file"),  # the last letter is cut in two
        (b"caf\xe9 con leche", "a binary file of no kind known here"),
        (b"\0\1\2\3", "a binary file of no kind known here"),
        (b"\x1f\x8b\x08\0", "a gzip file"),
        (gzip.compress(b"some text"), "a gzip file"),
        (gzip.compress(gzip.compress(b"INFO 02-03 10:00:10 [loggers.py:259] Running")), TWICE),
        (b"PK\x03\x04", "a zip file"),
        (b"clients,tok/s\n1,88\n8,640\n", TABLE),
        (b"| clients | tok/s |\n|---|---|\n| 1 | 88 |\n", TABLE),
    ],
)
def test_kind_is_told_from_the_first_bytes(tmp_path: Path, head: bytes, kind: str) -> None:
    (tmp_path / "file").write_bytes(head)
    assert kind_of(tmp_path / "file") == kind


def test_sqlite_whose_complaint_is_no_utf_8_is_told_by_its_names(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "file")
    connection.execute("CREATE TABLE NVTX_EVENTS (start INTEGER)")
    connection.close()
    content = (tmp_path / "file").read_bytes()
    (tmp_path / "file").write_bytes(content.replace(b"(start INT", b"(st\xf4)t INT"))
    assert input_kind(tmp_path / "file") is InputKind.NSYS_SQLITE


def test_real_sqlite_is_told(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "file")
    connection.execute("CREATE TABLE NVTX_EVENTS (start INTEGER)")
    connection.close()
    assert kind_of(tmp_path / "file") == "an SQLite database that stallscope did not write"


def test_missing_file_and_folder_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none: No such file or directory$"):
        kind_of(tmp_path / "none")
    with pytest.raises(InputError, match="is a folder"):
        kind_of(tmp_path)
