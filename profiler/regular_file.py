"""What may be read or replaced: regular files, never a pipe, a device, a socket or a folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.capture_lock import is_being_written

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def replaceable(path: Path, named: str | None = None) -> Path:
    """Return the file that stands at `path` once it is written: what links lead to, if any.

    A link stays a link, as with a shell's `>`, and the regular file behind it is replaced or, if
    there is none yet, made. Raises InputError, calling the path what it is `named`, for anything
    else that stands there (replacing it would remove a device or a pipe that others use), and for
    a capture that somebody is recording.
    """
    named = named or str(path)
    kind = other_kind(path)
    if kind is not None:
        raise InputError(f"{named}: is {kind}, not a regular file; name a file to be written")
    target = Path(os.path.realpath(path))
    if is_being_written(target):
        raise InputError(
            f"{named}: is being recorded by a Recorder that is still open; close it, or choose "
            "another name"
        )
    return target


def check_readable(path: Path) -> None:
    """Raise InputError for what a reader would wait on for ever."""
    kind = other_kind(path)
    if kind not in (None, "a folder"):
        raise InputError(f"{path}: is {kind}, not a regular file; - reads stdin")


def other_kind(path: Path) -> str | None:
    """Say what stands at `path`, links followed, if it is there and no regular file."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:  # a ring of links, a folder that may not be entered
        raise InputError(f"{path}: {error.strerror or error}") from error
    if stat.S_ISREG(mode):
        return None
    return next((kind for test, kind in _KINDS if test(mode)), "no file")
