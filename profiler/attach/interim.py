"""What a watch has seen so far, kept in a file meanwhile: what kills the watcher takes little."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from stallscope.errors import CaptureError, StallscopeError
from stallscope.profiler.capture import Capture, Cut
from stallscope.profiler.capture_create import reported
from stallscope.profiler.capture_writer import write_capture
from stallscope.profiler.regular_file import replaceable

EVERY_S = 5.0
# The whole is written each time, an hour's in under half a second: the longer that takes the more
# seldom, so that it takes 1/300 of the time at the most.
_REST = 300.0
_CUT = Cut(0, "")  # who reads the file says when

Standing = tuple[int, int, int, int]


class Interim:
    """Keeps a capture that is not at its end at `path`; as a cut one, replaced now and then.

    Only what we ourselves put there is ever replaced: a file that stands there already is left to
    the end, and what was seen so far is kept beside it, with .part behind its name.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path if not path.exists() else Path(f"{path}.part")
        self.failure: str | None = None
        self._beside = self.path != path
        self._clock = clock
        self._due_s = clock() + EVERY_S
        self._ours: Standing | None = None
        if self._beside and self.path.exists():
            self._fail(f"{path} and {self.path.name} exist")

    @property
    def is_ours(self) -> bool:
        """Whether what stands there now is what was put there last."""
        return self._ours is not None and _standing(self.path) == self._ours

    @property
    def is_due(self) -> bool:
        """Whether it is time to keep what was seen."""
        return self.failure is None and self._clock() >= self._due_s

    def keep(self, seen: Callable[[], Capture]) -> None:
        """Put what was seen so far there; where that fails `failure` says why, and no more is."""
        began_s = self._clock()
        if _standing(self.path) not in (None, self._ours):
            self._fail(f"{self.path} was written by something else")
            return
        try:
            put_capture(self.path, replace(seen(), cut=_CUT))
            self._ours = _standing(self.path)
        except StallscopeError as error:
            self._fail(" ".join(str(error).split()))
        now_s = self._clock()
        self._due_s = now_s + max(EVERY_S, _REST * (now_s - began_s))

    def drop(self) -> None:
        """Take away what was kept beside the file that is whole now."""
        if self._beside and self.is_ours:
            self.path.unlink(missing_ok=True)

    def _fail(self, reason: str) -> None:
        self.failure = reason


def put_capture(path: Path, capture: Capture) -> None:
    """Write a capture beside `path`, then rename: whatever stood there is replaced in one move.

    Raises CaptureError where it cannot be written; what stood there is then as it was.
    """
    target = replaceable(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        write_capture(beside, capture, force=True)
        with reported(path):
            beside.replace(target)
    except CaptureError as error:
        raise CaptureError(str(error).replace(str(beside), str(path))) from error
    finally:
        beside.unlink(missing_ok=True)


def _standing(path: Path) -> Standing | None:
    """Tell one file, and one state of it, from another; None where none stands there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
