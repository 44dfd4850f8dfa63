"""Create the capture file: never over another unasked, in WAL where the file system allows."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from stallscope.errors import CaptureError, InputError
from stallscope.profiler.capture_schema import APPLICATION_ID, META_SQL, TABLES, USER_VERSION
from stallscope.profiler.regular_file import replaceable

SIDECARS = ("-wal", "-shm", "-journal")


def create(path: Path, *, force: bool) -> Path:
    """Make an empty capture at `path`; with `force` an existing file is replaced in one move.

    Returns the file's own path, behind links. Raises InputError for one that exists, is no regular
    file or is being recorded.
    """
    with reported(path):
        target = replaceable(path)
        for suffix in SIDECARS:
            replaceable(Path(f"{target}{suffix}"))
        if force and target.exists():
            _replace(target)
            return target
        try:
            target.open("xb").close()
        except FileExistsError:
            raise InputError(
                f"{path} exists; choose another name, or force=True to replace it"
            ) from None
        try:
            _write_schema(target)  # SQLite itself drops a stray -wal beside an empty file
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        return target


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Connect to a fresh capture, in WAL where it can be had."""
    with reported(path):
        db = connect(path)
        # Surviving a power cut is not worth an fsync per commit; a killed process loses nothing
        # committed either way.
        db.execute("PRAGMA synchronous=NORMAL")
        if not _take_wal(db):
            db.execute("PRAGMA journal_mode=TRUNCATE")
        return db


def connect(path: Path) -> sqlite3.Connection:
    """Open for writing, usable from the writer's thread, with transactions of our own."""
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Turn what SQLite or the system says into one line about the capture at `path`."""
    try:
        yield
    except (sqlite3.OperationalError, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CaptureError(
            f"{path} cannot be written ({reason}); check the folder, its rights and the disk's room"
        ) from error


def _drop_sidecars(path: Path) -> None:
    """Remove a former file's -wal, -shm and -journal: SQLite would replay them into the new one."""
    for suffix in SIDECARS:
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _replace(path: Path) -> None:
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        _write_schema(beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    _drop_sidecars(path)


def _write_schema(path: Path) -> None:
    # Before WAL is turned on, so that a main file that lost its -wal still says what it is.
    with closing(connect(path)) as db:
        db.execute("BEGIN")
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.execute(f"PRAGMA user_version={USER_VERSION}")
        for statement in (META_SQL, *(table.create_sql for table in TABLES.values())):
            db.execute(statement)
        db.execute("COMMIT")


def _take_wal(db: sqlite3.Connection) -> bool:
    try:
        (mode,) = db.execute("PRAGMA journal_mode=WAL").fetchone()
        db.execute("BEGIN IMMEDIATE")  # needs the shared memory, which a network drive may refuse
        db.execute("COMMIT")
    except sqlite3.OperationalError:
        return False
    return bool(mode == "wal")
