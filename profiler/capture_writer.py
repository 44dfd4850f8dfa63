"""Write a capture while it happens: rows queue up, one thread commits them."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from stallscope.errors import CaptureError
from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_commit import write, write_singly
from stallscope.profiler.capture_create import create, open_for_writing, reported
from stallscope.profiler.capture_fork import keep_open, left_to_parent
from stallscope.profiler.capture_lock import WriterLock
from stallscope.profiler.capture_rows import MetaRow
from stallscope.profiler.capture_schema import TABLES, Row
from stallscope.profiler.journal import move_to_tables
from stallscope.profiler.notes import Note
from stallscope.profiler.spec import Subject
from stallscope.profiler.stop_signal import StopSignal
from stallscope.profiler.subject_json import checked_subject_json

# A killed process loses what was put since the last commit, half a second at most with the time to
# write it; each commit costs 0.2 ms, and an fsync where there is no write-ahead log.
COMMIT_INTERVAL_S = 0.4

# Rows in a transaction: of a burst that fills the disk what came before stays.
MOST_ROWS = 5_000


class CaptureWriter:
    """An open capture file. `put(row)` queues a row or a note and may be called from any thread.

    A request or a source with an id already put replaces the former. What goes wrong while writing
    (a full disk, a value SQLite cannot hold) is raised as CaptureError by the next put, and by
    close; every other row that was put is kept. Another writer cannot take the file meanwhile. In a
    forked child the writer refuses every row, and close leaves the file to the parent.
    """

    def __init__(self, path: str | PathLike[str], *, force: bool = False) -> None:
        self.path = Path(path)
        file = create(self.path, force=force)
        with reported(self.path):
            self._lock = WriterLock(file)
        try:
            self._db = open_for_writing(file)
        except BaseException:
            self._lock.release()
            raise
        self._queue: deque[Any] = deque()
        self.put: Callable[[Row | MetaRow | Note], None] = self._queue.append
        self.gather: Callable[[], Iterable[Row | Note]] = (
            tuple  # asked before each commit, on its thread
        )
        self._error: CaptureError | None = None
        self._disk_failed = False
        self._stop = StopSignal()
        self._closed = False
        self._pid = os.getpid()
        left_to_parent(self)
        self._thread = threading.Thread(target=self._run, name="stallscope-writer", daemon=True)
        self._thread.start()

    def set_meta(self, key: str, value: object) -> None:
        """Record a fact about the run; the value must be JSON."""
        self.put(MetaRow(key, json.dumps(value)))

    def set_subject(self, subject: Subject) -> None:
        """Record what is observed; the last call counts. ValueError names a field that is wrong."""
        self.set_meta("subject", checked_subject_json(subject))

    def close(self, *, ended: bool = True) -> None:
        """Commit what is queued and leave one plain file; `ended` False marks the run as cut."""
        if self._closed:
            return
        if ended and self._error is None:
            self.set_meta("ended", {"unix_ns": time.time_ns()})
        self._closed = True
        self.put = self._refuse
        self._stop.set()
        self._thread.join()
        try:
            self._finish()
        finally:
            self._db.close()
            self._lock.release()

    def leave_to_parent(self) -> None:
        """Let go of everything in a forked child, without a touch on the file."""
        if self._closed:
            return
        self._closed = True
        self._fail(
            CaptureError(
                f"{self.path} is recorded by process {self._pid}, which this one was forked "
                "from; make a Recorder in the child, with a file of its own"
            )
        )
        self._queue.clear()
        keep_open(self._db)
        self._lock.drop()

    def _finish(self) -> None:
        if not self._disk_failed:
            self._commit()
        if not self._disk_failed:
            self._move_notes()
        if self._disk_failed:
            # What is committed stays in the -wal if there is no room for it; if there is, or if
            # nothing was, the file must not claim that a -wal belongs to it.
            with suppress(sqlite3.Error):
                self._db.execute("PRAGMA journal_mode=DELETE")
        else:
            with reported(self.path):
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._db.execute("PRAGMA journal_mode=DELETE")
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while not self._disk_failed and not self._stop.wait(COMMIT_INTERVAL_S):
            self._commit()

    def _commit(self) -> None:
        self._gather()
        left = len(self._queue)
        while left and not self._disk_failed:
            rows = [self._queue.popleft() for _ in range(min(left, MOST_ROWS))]
            left -= len(rows)
            try:
                with reported(self.path):
                    self._write(rows)
            except CaptureError as error:
                self._disk_failed = True
                self._fail(error)

    def _gather(self) -> None:
        try:
            self._queue.extend(self.gather())
        except Exception as error:  # of a clock of the caller's
            self._fail(self._error or CaptureError(f"{self.path}: no samples any more: {error!r}"))

    def _write(self, rows: list[Any]) -> None:
        try:
            write(self._db, rows)
        except sqlite3.OperationalError:
            raise
        except Exception:  # a row that was filled wrongly; the others must not go with it
            wrong = write_singly(self._db, rows)
            if self._error is None:
                self._fail(CaptureError(f"{self.path}: a row cannot be written: {wrong}"))

    def _move_notes(self) -> None:
        try:
            with reported(self.path):
                move_to_tables(self._db)
        except CaptureError as error:
            self._disk_failed = True
            self._fail(error)
        except (ValueError, OverflowError, sqlite3.Error) as error:  # of a clock of the caller's
            self._fail(self._error or CaptureError(f"{self.path}: a note is no row: {error}"))

    def _fail(self, error: CaptureError) -> None:
        self._error = error
        self.put = self._refuse

    def _refuse(self, _: object) -> None:
        raise self._error or CaptureError(f"{self.path} is closed; nothing more can be recorded")


def write_capture(path: str | PathLike[str], capture: Capture, *, force: bool = False) -> None:
    """Write a whole capture to a file; a cut one stays cut."""
    writer = CaptureWriter(path, force=force)
    try:
        writer.set_subject(capture.subject)
        for key, value in capture.meta.items():
            if key != "ended":
                writer.set_meta(key, value)
        for table in TABLES.values():
            for row in getattr(capture, table.attribute):
                writer.put(row)
    finally:
        writer.close(ended=capture.cut is None)
