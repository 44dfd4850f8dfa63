"""Damage to JSON that leaves it JSON: a value where it does not belong."""

from __future__ import annotations

import random
import re

from fuzz_damage import MOST_BYTES, damaged

_PLACES = re.compile(rb'[:\[,]\s*("[^"]*"|-?[\d.]+(?:e[+-]?\d+)?|null|true|false)(?=\s*[,\]}])')
VALUES = (
    *(b"-1", b"0", b"1e308", b"1e400", b"NaN", b"-Infinity", b"null", b"true", b'"x"', b"[]"),
    *(b'{"a": [1]}', b"9" * 30, b'"inf"', b'"1,234.5"', b"1e-300", b'"2026-01-01"', b"{}"),
)


def damaged_json(content: bytes, rng: random.Random) -> bytes:
    """Replace up to three values of JSON that is whole and small; else damage it like any text."""
    places = list(_PLACES.finditer(content)) if len(content) <= MOST_BYTES else []
    if not places or rng.random() < 0.5:
        return damaged(content, rng)
    chosen = rng.sample(places, min(len(places), rng.randint(1, 3)))
    for place in sorted(chosen, key=lambda m: -m.start(1)):
        content = content[: place.start(1)] + rng.choice(VALUES) + content[place.end(1) :]
    return content
