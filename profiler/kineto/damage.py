"""What can be read of a piece of a trace in which something is damaged or unforeseen."""

from __future__ import annotations

import json
import re

from stallscope.profiler.kineto.events import Event, event_from

# Events, the text behind them, and whether their list ends there.
Taken = tuple[list[Event], bytes, bool]

BETWEEN = re.compile(rb"\}\s*,\s*\{")
CLOSING = re.compile(rb"\}\s*,?\s*\]")
_NEXT_EVENT = re.compile(BETWEEN.pattern.decode())
_NEXT_CLOSING = re.compile(CLOSING.pattern.decode())
_AFTER_EVENT = re.compile(r"[\s,]*")
_LONGEST_EVENT = 16 << 20
_LONGEST_TOKEN = 8  # of JSON that is cut, an error is told where it began: false, \\u00e9
_DECODER = json.JSONDecoder(strict=False)


def one_by_one(text: bytes, *, is_last: bool) -> tuple[Taken, int]:
    """Take each event that can be read; return how many cannot besides."""
    letters, place = text.decode("utf-8", "replace"), 0
    events: list[Event] = []
    unreadable = 0
    while True:
        place = _AFTER_EVENT.match(letters, place).end()  # type: ignore[union-attr]
        if letters[place : place + 1] in ("", "]"):
            return (events, letters[place + 1 :].encode(), place < len(letters)), unreadable
        try:
            value, place = _DECODER.raw_decode(letters, place)
            events.append(event_from(value))
        except (ValueError, RecursionError) as error:
            behind = _behind_damage(letters, place)
            if _breaks_off(error, letters) or (behind is None and not is_last):
                if is_last:
                    return (events, b"", False), unreadable
                if len(letters) - place < _LONGEST_EVENT:
                    return (events, letters[place:].encode(), False), unreadable
            unreadable += 1
            place = len(letters) if behind is None else behind


def _breaks_off(error: Exception, letters: str) -> bool:
    """Tell whether an event goes on behind the text, rather than being damaged."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.pos >= len(letters) - _LONGEST_TOKEN or error.msg.startswith("Unterminated string")


def _behind_damage(letters: str, place: int) -> int | None:
    """Return where the next event begins, else where the list closes, else None."""
    found = _NEXT_EVENT.search(letters, place + 1)
    if found is not None:
        return found.end() - 1
    closing = _NEXT_CLOSING.search(letters, place + 1)
    return None if closing is None else closing.end() - 1


def end_of_characters(text: bytes) -> int:
    """Return where the last UTF-8 character begins if a chunk ended inside it, else the end."""
    for back in range(1, min(4, len(text)) + 1):
        byte = text[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(text) - back if needed > back else len(text)
        if byte < 0x80:
            break
    return len(text)
