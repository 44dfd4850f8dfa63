"""Records that stand twice in a log: an excerpt pasted twice, or two that overlap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stallscope.profiler.server_log.clock import Stamp

if TYPE_CHECKING:
    from stallscope.profiler.server_log.lines import Line


class Repeats:
    """Tells a record that goes back to a stamp before the last, letter for letter as it was.

    Equal records of one second in a row are none: prompts that come in chunks log alike.
    """

    def __init__(self) -> None:
        self.count = 0
        self._seen: set[int] = set()
        self._last: Stamp | None = None
        self._goes_on = False

    def is_repeat(self, text: str, stamp: Stamp | None) -> bool:
        """Take the next record; what has no stamp goes with the record above it."""
        key = hash((text, stamp and stamp.seconds))
        if key not in self._seen:
            self._seen.add(key)
            if stamp is not None:
                self._last, self._goes_on = stamp, False
            return False
        if stamp is not None:
            is_back = self._last is not None and stamp.seconds < self._last.seconds
            self._goes_on = self._goes_on or is_back
        self.count += self._goes_on
        return self._goes_on

    def sentence(self) -> str | None:
        """Say how many were left out; None where none was."""
        if not self.count:
            return None
        lines = "1 line stands" if self.count == 1 else f"{self.count:,} lines stand"
        return f"{lines} twice in the log, letter for letter and with its time: counted once."


def once_a_second(lines: Iterable[Line]) -> Iterator[Line]:
    """Leave out stamped lines of one second that are equal, of what an engine logs at most once."""
    second, seen = -1, set[str]()
    for line in lines:
        if line.t_ns != second:
            second, seen = line.t_ns, set()
        if not line.level or line.text not in seen:
            yield line
        seen.add(line.text)
