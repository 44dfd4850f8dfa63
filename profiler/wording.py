"""Numbers within sentences: one way of setting them, and nouns that agree with them."""

from __future__ import annotations

from decimal import Decimal


def figure(value: float, digits: int = 3) -> str:
    """Return a number to so many significant digits, never with an exponent: "7.8", "0.00045".

    Thousands are separated, and a whole part is never rounded.
    """
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return f"{Decimal(f'{value:.{digits}g}'):,f}"


def were(count: int, noun: str) -> str:
    """Begin a sentence in the past about things: "1 event was", "3 events were"."""
    return f"{counted(count, noun)} {'was' if count == 1 else 'were'}"


def counted(count: float, noun: str) -> str:
    """Return a number of things: "1 request", "7.8 requests", "1,200 launches", "0 steps"."""
    text = figure(count)
    if text == "1":
        return f"1 {noun}"
    return f"{text} {noun}{'es' if noun.endswith(('ch', 's')) else 's'}"
