"""The records of a log file that may say something, cleaned of what terminals and pipes add."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from stallscope.errors import InputError
from stallscope.profiler.server_log.clock import LEVEL, LogClock, stamp_s
from stallscope.profiler.text_lines import decoded, text_lines

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\0")
_RECORD = re.compile(rf"{LEVEL} \d\d-\d\d \d\d:\d\d:\d\d")
_PROCESS = re.compile(r"\((?:\w+ )?\w+=[^()\n]{1,80}\)\s*$|\(\w+ pid=\d+\)\s*$")
_LONGEST = 1 << 20  # a line is read in pieces of this: requests are echoed whole
_KEEP = 1 << 14  # of a record; flags and figures stand at its head
_WHERE_ECHO = 400
_ECHO = ("Received request", "GenerateReqInput(", "Added request", "Receive: obj", "Finish: obj")


class Line(NamedTuple):
    """One record: when it was written, at which level ("" where none is stated), and its text."""

    t_ns: int
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Log:
    """The records kept, and how long the whole log goes on after the first stamp."""

    lines: tuple[Line, ...]
    end_ns: int


def read_log(path: Path, marks: re.Pattern[str]) -> Log:
    """Read the records that hold a mark. Echoed requests are left out: they may hold anything."""
    clock, kept, end_ns = LogClock(), [], 0
    for text in _records(_physical(path)):
        stamp = stamp_s(text)
        end_ns = clock.tell(stamp)
        if marks.search(text) and not any(echo in text[:_WHERE_ECHO] for echo in _ECHO):
            level = _RECORD.search(text[:_WHERE_ECHO])
            kept.append(Line(end_ns, level.group("level") if level else "", text[:_KEEP]))
    return Log(tuple(kept), end_ns)


def cleaned(text: str) -> Iterator[str]:
    """Yield the records of one physical line: those of several processes may be glued together."""
    text = _ESCAPE.sub("", text)
    starts = [m.start() for m in _RECORD.finditer(text)]
    edges = [0, *(s for s in starts if s > 0), len(text)]
    for start, end in zip(edges, edges[1:], strict=False):
        piece = text[start:end].rstrip()
        if piece and not _is_only_process(piece):
            yield piece


def _is_only_process(piece: str) -> bool:
    return len(piece) < 120 and _PROCESS.fullmatch(piece) is not None


def _records(lines: Iterable[str]) -> Iterator[str]:
    return (record for line in lines for record in cleaned(line))


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
                yield from decoded(raw).splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error})") from error
