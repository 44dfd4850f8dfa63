"""Mark a capture as being written, for as long as its writer's process lives."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

# One byte far behind SQLite's own locks, which lie at 2**30 (PENDING_BYTE in its os.h). The lock
# belongs to the open file, not to the process (fcntl(2), "Open file description locks"), so that it
# also holds against a second writer in this process.
_BYTE = 2**62
_held: set[tuple[int, int]] = set()  # device and inode of the captures that this process writes


class WriterLock:
    """Held from creation to release, or until the process ends.

    Where the file system or the platform has no such lock only this process is kept from writing
    the file twice.
    """

    def __init__(self, path: Path) -> None:
        self._file: int | None = os.open(path, os.O_RDWR)
        self._key = _key(self._file)
        _held.add(self._key)
        _set_lock(self._file, locked=True)

    def release(self) -> None:
        """Let go. Closing the file drops SQLite's locks on it as well: close the database first."""
        if self._file is not None:
            _set_lock(self._file, locked=False)  # a forked child may still have the file open
            self.drop()

    def drop(self) -> None:
        """Close the file in a forked child; the parent's lock stays."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            _held.discard(self._key)


def is_being_written(path: Path) -> bool:
    """Say whether a writer that is alive, here or in another process, has the capture open."""
    try:
        status = path.stat()
        if (status.st_dev, status.st_ino) in _held:
            return True  # not opened: closing it would drop SQLite's locks of this process
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return _is_locked(file)
    finally:
        os.close(file)


def _key(file: int) -> tuple[int, int]:
    status = os.fstat(file)
    return status.st_dev, status.st_ino


if sys.platform == "linux":
    import fcntl

    _FLOCK = "hhqqi"  # l_type, l_whence, l_start, l_len, l_pid as fcntl(2) has them

    def _set_lock(file: int, *, locked: bool) -> None:
        kind = fcntl.F_WRLCK if locked else fcntl.F_UNLCK
        try:
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _flock(kind))
        except OSError:
            return  # a file system without locks

    def _is_locked(file: int) -> bool:
        try:
            answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _flock(fcntl.F_WRLCK))
        except OSError:
            return False
        return bool(struct.unpack_from("h", answer)[0] != fcntl.F_UNLCK)

    def _flock(kind: int) -> bytes:
        return struct.pack(_FLOCK, kind, os.SEEK_SET, _BYTE, 1, 0).ljust(32, b"\0")

else:

    def _set_lock(file: int, *, locked: bool) -> None:
        """Do nothing: there is no such lock here."""

    def _is_locked(file: int) -> bool:
        return False
