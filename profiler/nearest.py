"""Names near to one that was mistyped or cut short."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return a question with up to three near names, or the list of all."""
    wanted = name.lower()
    begun = [other for other in known if wanted and other.startswith(wanted)]
    close = difflib.get_close_matches(wanted, known, n=3, cutoff=0.5)
    near = list(dict.fromkeys(begun + close))[:3]
    return f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}."
