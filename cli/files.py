"""Write a report so that nothing half written is ever left, nor anything overwritten unasked."""

from __future__ import annotations

import os
from pathlib import Path

from stallscope.errors import InputError, UsageError


def check_target(path: Path, *, force: bool, option: str) -> Path:
    """Return the file to write, behind links.

    Refuses a path that exists (without force), is no regular file or is being recorded, and one
    whose folder takes no new file.
    """
    import tempfile

    from stallscope.profiler.regular_file import other_kind, replaceable

    if other_kind(path) == "a folder":
        raise UsageError(f"{option} {path}: is a folder; name a file in it")
    target = replaceable(path, named=f"{option} {path}")
    if target.exists() and not force:
        raise UsageError(f"{option} {path}: exists; add --force to overwrite it")
    folder = target.parent if path.is_symlink() else path.parent  # as the user calls it
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{option} {path}: cannot write in {folder}: {reason}") from error
    return target


def write_text(path: Path, text: str) -> None:
    """Write beside the target, then rename: the target is the old file or the whole new one."""
    from stallscope.profiler.regular_file import replaceable

    target = replaceable(path)  # again: it may have changed while the work went on
    data = text.encode("utf-8", errors="backslashreplace")  # paths may hold bytes that are no text
    try:
        replace(target, data)
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror or error}") from error


def replace(target: Path, data: bytes) -> None:
    """Put a new file in the target's place in one step."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
