"""Write a report so that nothing half written is ever left, nor anything overwritten unasked."""

from __future__ import annotations

import os
from pathlib import Path

from stallscope.errors import InputError, UsageError


def check_target(path: Path, *, force: bool, option: str) -> None:
    """Refuse a path that exists (without force) or whose folder takes no new file."""
    import tempfile

    if path.is_dir():
        raise UsageError(f"{option} {path}: is a folder; name a file in it")
    if path.exists() and not force:
        raise UsageError(f"{option} {path}: exists; add --force to overwrite it")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{option} {path}: cannot write in {path.parent}: {reason}") from error


def write_text(path: Path, text: str) -> None:
    """Write beside the target, then rename: the target is the old file or the whole new one."""
    target = Path(os.path.realpath(path))  # a link stays one
    data = text.encode("utf-8", errors="backslashreplace")  # paths may hold bytes that are no text
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # a pipe or a device is not replaced
        else:
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
