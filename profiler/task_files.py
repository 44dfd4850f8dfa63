"""One file of each thread of this process, read again and again (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterator

_MOST_OPEN = 32  # of a process that may have few files left; beyond it each reading opens anew
_BYTES = 65_536


class TaskFiles:
    """The file `name` of every thread: files of the first threads seen stay open, as opening costs.

    Beside a decoding model opening, reading and closing one takes three times as long as reading.
    """

    def __init__(self, tasks: str, name: str) -> None:
        self._tasks, self._name = tasks, name
        self._open: dict[str, int] = {}

    def read(self) -> Iterator[tuple[str, bytes]]:
        """Yield each thread's id and the file's text; without those that have just ended.

        OSError where there are no threads to list, or they may not be read.
        """
        tasks = os.listdir(self._tasks)
        for ended in self._open.keys() - tasks:
            os.close(self._open.pop(ended))
        for task in tasks:
            text = self._text(task)
            if text is not None:
                yield task, text

    def close(self) -> None:
        """Let go of the files."""
        while self._open:
            os.close(self._open.popitem()[1])

    def _text(self, task: str) -> bytes | None:
        file = self._open.get(task)
        try:
            if file is not None:
                return os.pread(file, _BYTES, 0)
            file = os.open(f"{self._tasks}/{task}/{self._name}", os.O_RDONLY)
        except (FileNotFoundError, ProcessLookupError):
            self._forget(task)
            return None
        if len(self._open) < _MOST_OPEN:
            self._open[task] = file
            return self._text(task)
        try:
            return os.pread(file, _BYTES, 0)
        except ProcessLookupError:
            return None
        finally:
            os.close(file)

    def _forget(self, task: str) -> None:
        """Close the file of a thread that is gone: another may have its number by now."""
        if task in self._open:
            os.close(self._open.pop(task))
