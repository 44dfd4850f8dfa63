"""Names near to one that was mistyped or cut short."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

_LETTERS = re.compile(r"[a-z]+(?=-?\d)")


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return a question with up to three near names, or the list of all."""
    wanted = name.lower()
    begun = [other for other in known if wanted and other.startswith(wanted)]
    begun += _family(wanted, known)
    close = difflib.get_close_matches(wanted, known, n=3, cutoff=0.5)
    near = list(dict.fromkeys(begun + close))[:3]
    return f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}."


def _family(wanted: str, known: Sequence[str]) -> list[str]:
    """Return names of the same letters before a number, nearest first: h100 for h300."""
    letters = _LETTERS.match(wanted)
    if letters is None:
        return []
    alike = [o for o in known if (m := _LETTERS.match(o)) and m[0] == letters[0]]
    return sorted(alike, key=lambda o: -difflib.SequenceMatcher(None, wanted, o).ratio())
