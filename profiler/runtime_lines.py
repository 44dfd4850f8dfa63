"""Lines behind the time at which a container's runtime took them.

As CRI writes files, `2026-02-03T09:00:10.123456789Z stdout F INFO …` (F ends a line, P is a piece
of a longer one), and as `docker logs -t` and `kubectl logs --timestamps` print them, without stream
and tag.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)"
_HEAD = re.compile(rf"\ufeff?(?P<time>{_TIME}) (?:(?:stdout|stderr) [FP](?::\S{{1,20}})? ?)?")
_LOOKED_AT = 20  # lines: a shell may have said something before
_PIECE = re.compile(
    rb"^(\S{20,40} (stdout|stderr)) P((?::\S{1,20})? [^\n]*)\n\S{20,40} \2 ([FP])(?::\S{1,20})? ",
    re.MULTILINE,
)


class Stamped(NamedTuple):
    """What a program printed, and the runtime's time as it stands."""

    text: str
    time: str


def is_stamped(lines: Sequence[str]) -> bool:
    """Tell whether these first lines of a text mostly have such a time."""
    first = [line for line in lines[:_LOOKED_AT] if line.strip()]
    return 2 * sum(_HEAD.match(line) is not None for line in first) > len(first)


def stamped(line: str) -> Stamped | None:
    """Return a line's parts; None for one without such a time."""
    found = _HEAD.match(line)
    return Stamped(line[found.end() :], found["time"]) if found is not None else None


def unstamped(lines: Sequence[str]) -> list[str]:
    """Return the lines without such times."""
    return [found.text if (found := stamped(line)) else line for line in lines]


def whole_lines(block: bytes) -> bytes:
    """Put the pieces of long lines together, as far as they follow each other."""
    while b" P" in block:
        block, count = _PIECE.subn(rb"\1 \4\3", block)
        if not count:
            break
    return block
