"""The records of a log file that may say something, cleaned of what terminals and pipes add."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from stallscope.errors import InputError
from stallscope.profiler.server_log.clock import LEVEL, LogClock, stamp_of
from stallscope.profiler.text_lines import text_lines

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\0")
_RECORD = re.compile(rf"{LEVEL} \d\d-\d\d \d\d:\d\d:\d\d")
_PROCESS = re.compile(r"\((?:\w+ )?\w+=[^()\n]{1,80}\)\s*$|\(\w+ pid=\d+\)\s*$")
_LONGEST = 1 << 20  # a line is read in pieces of this: requests are echoed whole
_KEEP = 1 << 14  # of a record; flags and figures stand at its head
_HEAD = 400
_ECHO = ("Received request", "GenerateReqInput(", "Added request", "Receive: obj", "Finish: obj")


class Line(NamedTuple):
    """One record: when it was written, at which level ("" where none is stated), and its text."""

    t_ns: int
    level: str
    text: str


def read_log(path: Path, marks: Sequence[str], clock: LogClock) -> tuple[Line, ...]:
    """Read the records that hold a mark. Echoed requests are left out: they may hold anything."""
    kept = []
    has_mark = re.compile("|".join(map(re.escape, marks))).search
    lines = (line for line in map(_plain, _physical(path)) if has_mark(line))
    for text in (record for line in lines for record in cleaned(line)):
        if has_mark(text) and not _is_echo(text):
            level = _RECORD.search(text, 0, _HEAD)
            t_ns = clock.tell(stamp_of(text))
            kept.append(Line(t_ns, level.group("level") if level else "", text[:_KEEP]))
    return tuple(kept)


def _is_echo(text: str) -> bool:
    head = text[:_HEAD]
    return any(echo in head for echo in _ECHO)


def _plain(text: str) -> str:
    return _ESCAPE.sub("", text) if "\x1b" in text or "\0" in text else text


def cleaned(text: str) -> Iterator[str]:
    """Yield the records of one physical line: those of several processes may be glued together."""
    starts = [m.start() for m in _RECORD.finditer(text)]
    edges = [0, *(s for s in starts if s > 0), len(text)]
    for start, end in zip(edges, edges[1:], strict=False):
        piece = text[start:end].rstrip()
        if piece and not _is_only_process(piece):
            yield piece


def _is_only_process(piece: str) -> bool:
    return len(piece) < 120 and _PROCESS.fullmatch(piece) is not None


def _physical(path: Path) -> Iterator[str]:
    """Yield lines without loading the file; what stands behind a carriage return is a new one."""
    try:
        with path.open("rb") as file:
            head = file.read(2)
            if head in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                yield from text_lines(path)
                return
            file.seek(0)
            while raw := file.readline(_LONGEST):
                yield from raw.decode("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error})") from error
