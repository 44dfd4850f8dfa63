"""Copy a capture that was cut, or is still being written, so that SQLite recovers the copy."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from stallscope.errors import CaptureError
from stallscope.profiler.capture_create import SIDECARS

_ATTEMPTS = 20
_WAL_HEADER_BYTES = 32


def sidecars(path: Path) -> tuple[Path, ...]:
    """Return the files that SQLite keeps beside an open database, where they are there.

    They lie beside the database itself, not beside a link to it.
    """
    path = Path(os.path.realpath(path))
    return tuple(file for suffix in SIDECARS if (file := Path(f"{path}{suffix}")).exists())


def copy_with_sidecars(path: Path, folder: Path) -> Path:
    """Copy the file and what lies beside it into `folder`, as of one moment; links are followed.

    A live writer may go on appending to the -wal meanwhile: a prefix of it is a valid state. Only
    when it moved pages into the main file during the copy is the copy taken again.
    """
    named, path = path, Path(os.path.realpath(path))
    for _ in range(_ATTEMPTS):
        before = _state(path)
        copy = folder / path.name
        for file in (path, *sidecars(path)):
            shutil.copyfile(file, folder / file.name)
        if _state(path) == before:
            return copy
        time.sleep(0.05)
    raise CaptureError(
        f"{named} changes faster than it can be read; try again when the run is over"
    )


def _state(path: Path) -> tuple[object, ...]:
    main, wal, journal = path.stat(), Path(f"{path}-wal"), Path(f"{path}-journal")
    generation = b""
    if wal.exists():
        with wal.open("rb") as file:
            generation = file.read(_WAL_HEADER_BYTES)
    rollback = journal.stat().st_size if journal.exists() else None
    return main.st_size, main.st_mtime_ns, generation, rollback
