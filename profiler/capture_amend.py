"""Add a fact to a capture that was closed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from stallscope.errors import CaptureError
from stallscope.profiler.capture_lock import is_being_written
from stallscope.profiler.capture_rows import MetaRow, insert_rows, transaction


def amend_capture(path: Path, key: str, value: Mapping[str, object]) -> None:
    """Put a fact about the run into the file's meta, whole or not at all."""
    if is_being_written(path):
        raise CaptureError(f"{path} is still being recorded; nothing can be added to it")
    row = MetaRow(key, json.dumps(value))
    try:
        address = f"{path.resolve().as_uri()}?mode=rw"
        with (
            closing(sqlite3.connect(address, uri=True, isolation_level=None)) as db,
            transaction(db),
        ):
            insert_rows(db, [row])
    except sqlite3.Error as error:
        raise CaptureError(f"{path}: nothing can be added to it ({error})") from error
