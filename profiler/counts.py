"""Whole numbers as callers give them: taken as plain ints, or refused by name at the call.

The fast way is the caller's own: `type(value) is int and not value >> BITS` says in 40 ns that a
value is plain and neither negative nor too large. Whatever else it is comes here.
"""

from __future__ import annotations

import operator

BITS = 61  # the sum of two counts still fits SQLite's 64-bit integers
MOST = 2**BITS - 1


def count(name: str, value: object) -> int:
    """Return a count from 0 to MOST; TypeError or ValueError name what is none.

    Whatever has `__index__` is a whole number, as NumPy's and torch's integers have; a bool is not.
    """
    number = _whole(name, value)
    if not 0 <= number <= MOST:
        raise ValueError(f"{name} must be from 0 to 2**{BITS} - 1, not {_shown(number)}")
    return number


def stored(name: str, value: object) -> int:
    """Return a number or a time that may be negative, within 64 bits."""
    number = _whole(name, value)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{name} must fit 64 bits, not {_shown(number)}")
    return number


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, not {value}")
    try:
        return int(operator.index(value))  # type: ignore[arg-type]
    except TypeError:
        shown = f"{value!r:.40} ({type(value).__name__})"
        raise TypeError(f"{name} must be a whole number, not {shown}") from None


def _shown(number: int) -> str:
    """Spell a number out unless it has more digits than anybody reads."""
    return str(number) if number.bit_length() <= 128 else f"one of {number.bit_length()} bits"
