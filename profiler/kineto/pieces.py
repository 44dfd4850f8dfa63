"""A JSON trace in pieces: lists of events as they come, and what stands around them.

A piece ends between two events. Where that is, is found by trial: a "},{" stands between two events
if and only if what lies before it decodes as a list of events, for inside a string or a nested
value it leaves something open. So a trace is read in one pass and in little memory, and what is
whole in a trace that was cut or damaged is found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from stallscope.profiler.kineto.damage import BETWEEN, CLOSING, Taken, end_of_characters, one_by_one
from stallscope.profiler.kineto.events import Event, decode, repaired

_OPENING = re.compile(rb'"traceEvents"\s*:\s*\[')
_BOM = b"\xef\xbb\xbf"
_TRIES = 4  # borders from the end of a piece, before each event is looked at
_CLOSING_TRIES = 50
_DECODER = json.JSONDecoder(strict=False)


class NoTrace(Exception):
    """The text is not a trace; the message says what it is instead."""


@dataclass(slots=True)
class Surroundings:
    """What stands around the events: filled while they are read, complete after the last."""

    header: dict[str, Any] = field(default_factory=dict)
    is_whole: bool = False
    unreadable: int = 0  # events that are no valid JSON
    bytes_behind: int = 0  # of something else that follows the trace


def events_of(chunks: Iterator[bytes], around: Surroundings) -> Iterator[list[Event]]:
    """Yield the trace's events in lists. Raises NoTrace where the text is none."""
    is_list, text = _open(chunks, around)
    for chunk in chunks:
        events, text, is_end = _take(text + chunk, around, is_last=False)
        yield events
        if is_end:
            _close(text + b"".join(chunks), is_list, around)
            return
    while text:
        events, text, is_end = _take(text, around, is_last=True)
        yield events
        if is_end:
            _close(text, is_list, around)
            return


def _open(chunks: Iterator[bytes], around: Surroundings) -> tuple[bool, bytes]:
    """Return whether the trace is a bare list, and the text behind its opening bracket."""
    text = next(chunks, b"").removeprefix(_BOM).lstrip()
    if text.startswith(b"["):
        return True, text[1:]
    if not text.startswith(b"{"):
        raise NoTrace("is not JSON")
    searched = 0
    while True:
        for found in _OPENING.finditer(text, searched):
            header = _object(text[: found.start()] + b'"":0}')
            if header is not None:
                around.header.update(header)
                return False, text[found.end() :]
        chunk = next(chunks, b"")
        if not chunk:
            raise NoTrace(_what_else(text))
        searched = max(0, len(text) - 64)
        text += chunk


def _what_else(text: bytes) -> str:
    if _object(text) is not None:
        return "is JSON without a list of traceEvents"
    if b'"traceEvents"' in text or b'"schemaVersion"' in text:
        return "ends before its first event"
    return "is not JSON"


def _close(text: bytes, is_list: bool, around: Surroundings) -> None:
    """Read what stands behind the events' closing bracket, and note what follows the trace."""
    text = text.strip()
    if is_list:
        around.is_whole = True
        around.bytes_behind = len(text)
        return
    trailer = _object(b'{"":0' + text)
    if trailer is None:
        end = _end_of_object(text)
        around.bytes_behind = len(text[end:].strip())
        text = text[:end]
        trailer = _object(b'{"":0' + text)
    if trailer is not None:
        around.header.update(trailer)
    around.header.pop("", None)
    around.is_whole = text.endswith(b"}")


def _end_of_object(text: bytes) -> int:
    """Return where the object ends whose beginning is missing, the text's end if it does not."""
    opening = '{"":0'
    letters = opening + text.decode("latin-1")  # a letter for each byte
    try:
        _, end = _DECODER.raw_decode(letters)
    except (ValueError, RecursionError):
        return len(text)
    return end - len(opening)


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(repaired(text))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _take(text: bytes, around: Surroundings, *, is_last: bool) -> Taken:
    """Return the events in the text, the text behind them, and whether the list ends there."""
    text = text.lstrip(b" \t\r\n,")
    if not text:
        return [], b"", False
    if text.startswith(b"]"):
        return [], text[1:], True
    found = _as_list(text, is_last)
    if found is not None:
        return found
    end = len(text) if is_last else end_of_characters(text)
    whole = repaired(text[:end])
    found = _as_list(whole, is_last)
    if found is None:
        found, unreadable = one_by_one(whole, is_last=is_last)
        around.unreadable += unreadable
    events, rest, is_end = found
    return events, rest + text[end:], is_end


def _as_list(text: bytes, is_last: bool) -> Taken | None:
    if is_last:
        return _to_closing(text) or _to_border(text)
    return _to_border(text) or _to_closing(text)


def _to_border(text: bytes) -> Taken | None:
    """Take events up to the last border between two."""
    view = memoryview(text)
    for start, end in islice(_borders_backwards(text), _TRIES):
        events = decode(view[:start])
        if events is not None:
            return events, text[end:], False
    return None


def _borders_backwards(text: bytes) -> Iterator[tuple[int, int]]:
    place = len(text)
    while (place := text.rfind(b"}", 0, place)) >= 0:
        found = BETWEEN.match(text, place)
        if found is not None:
            yield place + 1, found.end() - 1


def _to_closing(text: bytes) -> Taken | None:
    """Take events up to the bracket that closes the list."""
    view = memoryview(text)
    for found in islice(CLOSING.finditer(text), _CLOSING_TRIES):
        events = decode(view[: found.start() + 1])
        if events is not None:
            return events, text[found.end() :], True
    return None
