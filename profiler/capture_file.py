"""Read a capture file, whole or cut, without writing a byte beside it."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from stallscope.errors import CaptureError, InputError
from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_copy import copy_with_sidecars, sidecars
from stallscope.profiler.capture_schema import APPLICATION_ID, JOURNAL_VERSION, TABLES
from stallscope.profiler.capture_tables import read_table
from stallscope.profiler.cut import cut_of
from stallscope.profiler.cut_requests import with_noted_tokens
from stallscope.profiler.journal_reading import with_noted
from stallscope.profiler.regular_file import check_readable
from stallscope.profiler.subject_json import subject_from_json

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
# Facts that are looked into. Flags are names: a list of them, or a mapping by them.
_SHAPES = {"flags": (list, dict), "host": (dict,), "trace": (dict,)}


@dataclass(frozen=True, slots=True)
class _Header:
    """What the first 100 bytes of an SQLite file say (sqlite.org/fileformat)."""

    application_id: int
    user_version: int
    wal: bool


def is_capture(path: str | PathLike[str]) -> bool:
    """Say whether the file's own bytes call it a stallscope capture."""
    try:
        header = _read_header(Path(path))
    except (InputError, CaptureError):
        return False
    return header.application_id == APPLICATION_ID


def read_capture(path: str | PathLike[str]) -> Capture:
    """Read a capture; one that was cut is recovered in a temporary copy and says so."""
    path = Path(path)
    header = _read_header(path)
    if header.application_id != APPLICATION_ID:
        raise InputError(
            f"{path} is an SQLite file, but not a stallscope capture; give a file that "
            "stallscope recorded"
        )
    if header.user_version > JOURNAL_VERSION:
        raise CaptureError(
            f"{path} was written by a newer stallscope (format {header.user_version}, this one "
            f"reads up to {JOURNAL_VERSION}); upgrade stallscope"
        )
    wal_lost = header.wal and not Path(f"{os.path.realpath(path)}-wal").exists()
    try:
        with _opened(path) as db:
            return _assemble(path, db, wal_lost=wal_lost)
    except (sqlite3.Error, ValueError, RecursionError) as error:
        raise _unreadable(path, error, wal_lost=wal_lost) from error
    except OSError as error:
        raise CaptureError(
            f"{path} cannot be copied to {tempfile.gettempdir()} for recovery "
            f"({error.strerror}); set TMPDIR to a folder with room"
        ) from error


def _read_header(path: Path) -> _Header:
    check_readable(path)
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER_BYTES)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the name") from error
    if not head:
        raise InputError(f"{path} is empty; a capture is written from its first moment on")
    if not head.startswith(_MAGIC):
        raise InputError(f"{path} is not an SQLite file, so not a stallscope capture")
    if len(head) < _HEADER_BYTES:
        raise CaptureError(f"{path} is truncated to {len(head)} bytes; copy it again")
    return _Header(
        application_id=int.from_bytes(head[68:72]),
        user_version=int.from_bytes(head[60:64]),
        wal=head[18] == 2,
    )


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    if not sidecars(path):
        with closing(_connect(path, "mode=ro&immutable=1")) as db:
            yield db
        return
    with tempfile.TemporaryDirectory(prefix="stallscope-") as folder:
        copy = copy_with_sidecars(path, Path(folder))
        with closing(_connect(copy, "mode=rw")) as db:
            yield db


def _connect(path: Path, options: str) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.resolve().as_uri()}?{options}", uri=True)
    db.execute("PRAGMA trusted_schema=OFF")
    return db


def _assemble(path: Path, db: sqlite3.Connection, *, wal_lost: bool) -> Capture:
    if wal_lost and db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise CaptureError(_wal_missing(path))  # cut while pages were on their way out of the -wal
    meta = _read_meta(db)
    subject = subject_from_json(meta.pop("subject", {}))
    rows = with_noted(db, {t.attribute: read_table(db, t) for t in TABLES.values()})
    whole = Capture(subject=subject, meta=meta, **rows)
    if "ended" in meta:
        return whole
    if wal_lost and not any(rows.values()) and not meta:
        raise CaptureError(
            f"{path} was cut and holds no rows: none had been written yet, or they are in "
            f"{path.name}-wal, which is missing; if there is such a file, copy both together"
        )
    cut = cut_of(whole, wal_lost=wal_lost)
    rows["requests"] = with_noted_tokens(whole.requests, whole.tokens)
    return Capture(subject=subject, meta=meta, cut=cut, **rows)


def _read_meta(db: sqlite3.Connection) -> dict[str, Any]:
    rows = db.execute("SELECT key, value_json FROM meta").fetchall()
    if not all(isinstance(cell, str) for row in rows for cell in row):
        raise ValueError("meta: a key or its value is no text")
    meta: dict[str, Any] = {key: json.loads(text) for key, text in rows}
    for key, shapes in _SHAPES.items():
        if key in meta and not isinstance(meta[key], shapes):
            raise ValueError(f"meta: {key} is a {type(meta[key]).__name__}")
    return meta


def _unreadable(path: Path, error: Exception, *, wal_lost: bool) -> CaptureError:
    if wal_lost:
        return CaptureError(_wal_missing(path))
    return CaptureError(f"{path} is damaged or truncated ({error}); copy or record it again")


def _wal_missing(path: Path) -> str:
    return (
        f"{path} was cut and its rows are in {path.name}-wal, which is missing; "
        "copy both files together"
    )
