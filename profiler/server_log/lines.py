"""The records of a log file that may say something, cleaned of what terminals and pipes add."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from stallscope.errors import InputError
from stallscope.profiler.opened import opened
from stallscope.profiler.runtime_lines import is_stamped, stamped, whole_lines
from stallscope.profiler.server_log.clock import LEVEL, LogClock, Stamp, stamp_of, utc_stamp
from stallscope.profiler.server_log.records import is_records, record_of
from stallscope.profiler.server_log.repeats import Repeats

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_RECORD = re.compile(rf"{LEVEL} \d\d-\d\d \d\d:\d\d:\d\d")
_PROCESS = re.compile(r"\((?:\w+ )?\w+=[^()\n]{1,80}\)\s*$|\(\w+ pid=\d+\)\s*$")
_BLOCK = 1 << 20  # read at once; a line that is longer comes in pieces: requests are echoed whole
_KEEP = 1 << 14  # of a record; flags and figures stand at its head
_HEAD = 400
_ECHO = ("Received request", "GenerateReqInput(", "Added request", "Receive: obj", "Finish: obj")


AsWritten = Callable[[bytes], Iterator[tuple[str, Stamp | None]]]


class Line(NamedTuple):
    """One record: when it was written, at which level ("" where none is stated), and its text."""

    t_ns: int
    level: str
    text: str


def read_log(
    path: Path, marks: Sequence[str], clock: LogClock, repeats: Repeats
) -> tuple[Line, ...]:
    """Read the records that hold a mark, each once.

    Echoed requests are left out: they may hold anything.
    """
    from stallscope.profiler.server_log.likely_lines import LikelyLines

    likely = LikelyLines([mark.encode() for mark in marks])
    as_written, blocks = _written(path)
    lines = (raw for block in blocks for raw in likely.find(block))
    texts = (
        (text, time)
        for raw in lines
        for whole, time in as_written(raw)
        for text in whole.splitlines()
        if _holds(text, marks)
    )
    records = (
        (record, time or stamp_of(record))
        for text, time in texts
        for record in cleaned(text)
        if (record is text or _holds(record, marks)) and not _is_echo(record)
    )
    return tuple(
        Line(clock.tell(stamp), _level(record), record[:_KEEP])
        for record, stamp in records
        if not repeats.is_repeat(record, stamp)
    )


def all_lines(path: Path) -> Iterator[str]:
    """Yield every line of a log as it was printed, colours left out."""
    as_written, blocks = _written(path)
    for block in blocks:
        for raw in block.splitlines():
            for text, _ in as_written(raw):
                yield from text.splitlines() or ("",)


def _written(path: Path) -> tuple[AsWritten, Iterator[bytes]]:
    """Return how a log's lines are read, and the log in blocks of whole lines."""
    blocks = _blocks(path)
    first = next(blocks, b"")
    head = first[: 1 << 16].decode(errors="replace")
    if is_records(head):
        return _of_records, chain((first,), blocks)
    if is_stamped(head.splitlines()):
        return _of_runtime(), map(whole_lines, chain((first,), blocks))
    return _alone, chain((first,), blocks)


def _alone(raw: bytes) -> Iterator[tuple[str, Stamp | None]]:
    """Yield a line, which tells its time itself."""
    yield _plain(raw.decode(errors="replace")), None


def _of_records(raw: bytes) -> Iterator[tuple[str, Stamp | None]]:
    """Yield a record with the daemon's time; nothing for a damaged one."""
    record = record_of(raw.decode(errors="replace"))
    if record is not None:
        yield _plain(record[0]), record[1]


def _of_runtime() -> AsWritten:
    """Return what yields a line with its runtime's time; one without has that of the line before,
    as its own may be of another zone."""
    last: list[Stamp | None] = [None]

    def as_written(raw: bytes) -> Iterator[tuple[str, Stamp | None]]:
        line = raw.decode(errors="replace")
        found = stamped(line)
        if found is not None:
            last[0] = utc_stamp(found.time) or last[0]
        yield _plain(line if found is None else found.text), last[0]

    return as_written


def _holds(text: str, marks: Sequence[str]) -> bool:
    return any(mark in text for mark in marks)  # several times as fast as one pattern of them all


def _plain(text: str) -> str:
    """Leave out colours; what stands behind a carriage return is still a line of its own."""
    return _ESCAPE.sub("", text) if "\x1b" in text else text


def _level(record: str) -> str:
    found = _RECORD.search(record, 0, _HEAD)
    return found.group("level") if found else ""


def _is_echo(text: str) -> bool:
    head = text[:_HEAD]
    return any(echo in head for echo in _ECHO)


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


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield the file as whole lines of UTF-8, some at a time."""
    rest = b""
    try:
        for read in _reads(path):
            block = rest + read.replace(b"\0", b"")
            end = block.rfind(b"\n") + 1 or len(block)
            yield block[:end]
            rest = block[end:]
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error})") from error
    if rest:
        yield rest


def _reads(path: Path) -> Iterator[bytes]:
    with opened(path) as file:
        content = iter(lambda: file.read(_BLOCK), b"")
        head = next(content, b"")
        is_utf_16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        decode = codecs.getincrementaldecoder("utf-16")("replace").decode if is_utf_16 else None
        for block in chain((head,), content):
            yield decode(block).encode() if decode else block
