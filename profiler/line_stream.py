"""The lines of a text file from anywhere, a block at a time: the file may be larger than memory."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.opened import opened

_BLOCK = 1 << 20  # bytes read at once, and the most letters of a line: longer ones come in pieces
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def line_stream(path: Path) -> Iterator[str]:
    """Yield lines with their ends, decoded as `text_lines` does; InputError if unreadable."""
    rest = ""
    try:
        with opened(path) as file:
            name = "utf-16" if file.peek(2).startswith(_UTF_16) else "utf-8-sig"
            decoder = codecs.getincrementaldecoder(name)("replace")
            while block := file.read(_BLOCK):
                *lines, rest = _split(rest + decoder.decode(block))
                yield from lines
            yield from (rest + decoder.decode(b"", final=True)).splitlines(keepends=True)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error})") from error


def _split(text: str) -> list[str]:
    """Return whole lines, and last what the next block goes on with: "" where there is nothing."""
    lines = text.splitlines(keepends=True)
    if lines and not _may_go_on(lines[-1]):
        lines.append("")
    return lines or [""]


def _may_go_on(line: str) -> bool:
    """Tell whether a line has no end yet; behind "\\r" may come the "\\n" of the same end."""
    is_open = line.endswith("\r") or line.splitlines()[0] == line
    return is_open and len(line) < _BLOCK


def with_last(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Pair each line with whether it is the last one."""
    before: str | None = None
    for line in lines:
        if before is not None:
            yield before, False
        before = line
    if before is not None:
        yield before, True


class UntilCut:
    """Lines without a last one that breaks off; `is_cut` tells, after the last, whether one did."""

    def __init__(self, lines: Iterable[str], breaks_off: Callable[[str], bool]) -> None:
        self._lines, self._breaks_off = lines, breaks_off
        self.is_cut = False

    def __iter__(self) -> Iterator[str]:
        for line, is_last in with_last(self._lines):
            self.is_cut = is_last and self._breaks_off(line)
            if not self.is_cut:
                yield line
