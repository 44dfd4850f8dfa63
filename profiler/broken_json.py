"""Where a JSON file breaks off, or stops being JSON."""

from __future__ import annotations

import json
from pathlib import Path

_MOST_BYTES = 64 << 20  # a larger one is told by its kind alone
_WORDS = ("true", "false", "null")


def why_broken(path: Path) -> str | None:
    """Say at which byte a file is cut or is no JSON; None where it is whole, or one of lines."""
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        return None
    try:
        json.loads(content.decode())
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # an object on each line
            return None
        if _is_cut(error):
            return f"not valid JSON: it is cut at byte {len(content):,}"
        at = len(error.doc[: error.pos].encode())
        return f"not valid JSON, from byte {at:,} on"
    except (ValueError, RecursionError):
        return None
    return None


def _is_cut(error: json.JSONDecodeError) -> bool:
    rest = error.doc[error.pos :].strip()
    is_word = any(word.startswith(rest) for word in _WORDS) or rest == "-"
    return is_word or error.msg.startswith("Unterminated string")
