"""Write a capture while it happens: rows queue up, one thread commits them."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections import defaultdict, deque
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stallscope.errors import CaptureError
from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.capture_create import create, open_for_writing, reported
from stallscope.profiler.capture_schema import TABLES, Row
from stallscope.profiler.spec import Subject
from stallscope.profiler.stop_signal import StopSignal
from stallscope.profiler.subject_json import subject_to_json

# A killed process loses what was put since the last commit, half a second at most with the time to
# write it; each commit costs 0.2 ms, and an fsync where there is no write-ahead log.
COMMIT_INTERVAL_S = 0.4

# Ten times as fast as json, and a run writes two events a step; what is not a number becomes null.
_encode = msgspec.json.Encoder().encode


class _Meta(NamedTuple):
    key: str
    value_json: str


_INSERT: dict[type, str] = {table.row_type: table.insert_sql for table in TABLES.values()}
_INSERT[_Meta] = "INSERT OR REPLACE INTO meta VALUES (?, ?)"


class CaptureWriter:
    """An open capture file. `put` is cheap and may be called from any thread.

    What goes wrong while writing (a full disk, a value SQLite cannot hold) is raised as
    CaptureError by the next put, and by close.
    """

    def __init__(self, path: str | PathLike[str], *, force: bool = False) -> None:
        self.path = Path(path)
        create(self.path, force=force)
        self._db = open_for_writing(self.path)
        self._queue: deque[Row | _Meta] = deque()
        self._error: CaptureError | None = None
        self._stop = StopSignal()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="stallscope-writer", daemon=True)
        self._thread.start()

    def put(self, row: Row) -> None:
        """Queue a row. A request or a source with an id already put replaces the former."""
        if self._error is not None or self._closed:
            raise self._refusal()
        self._queue.append(row)

    def set_meta(self, key: str, value: object) -> None:
        """Record a fact about the run; the value must be JSON."""
        if self._error is not None or self._closed:
            raise self._refusal()
        self._queue.append(_Meta(key, json.dumps(value)))

    def set_subject(self, subject: Subject) -> None:
        """Record what is observed; the last call counts."""
        self.set_meta("subject", subject_to_json(subject))

    def close(self, *, ended: bool = True) -> None:
        """Commit what is queued and leave one plain file; `ended` False marks the run as cut."""
        if self._closed:
            return
        if ended and self._error is None:
            self.set_meta("ended", {"unix_ns": time.time_ns()})
        self._closed = True
        self._stop.set()
        self._thread.join()
        try:
            self._finish()
        finally:
            self._db.close()

    def _finish(self) -> None:
        if self._error is None:
            self._commit()
        if self._error is not None:
            raise self._error
        with reported(self.path):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.execute("PRAGMA journal_mode=DELETE")

    def _run(self) -> None:
        while self._error is None and not self._stop.wait(COMMIT_INTERVAL_S):
            self._commit()

    def _commit(self) -> None:
        batches: dict[type, list[Any]] = defaultdict(list)
        for _ in range(len(self._queue)):
            row = self._queue.popleft()
            batches[type(row)].append(row)
        try:
            with reported(self.path):
                self._write(batches)
        except CaptureError as error:
            self._error = error
        except Exception as error:  # a row that was filled wrongly; it must not vanish in a thread
            self._error = CaptureError(f"{self.path}: a row cannot be written: {error!r}")

    def _write(self, batches: dict[type, list[Any]]) -> None:
        if not batches:
            return
        self._db.execute("BEGIN")
        try:
            for kind, rows in batches.items():
                # sqlite3 reads a plain tuple faster than a named one.
                values = map(_event_values if kind is Event else tuple, rows)
                self._db.executemany(_INSERT[kind], values)
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # a full disk may have rolled back already
                self._db.execute("ROLLBACK")
            raise

    def _refusal(self) -> CaptureError:
        return self._error or CaptureError(f"{self.path} is closed; nothing more can be recorded")


def _event_values(row: Event) -> tuple[object, ...]:
    try:
        data = _encode(row.data).decode()
    except (TypeError, UnicodeEncodeError):  # half a surrogate pair, as in a broken file name
        data = json.dumps(dict(row.data))
    return row.t_ns, row.kind, row.request, data


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
