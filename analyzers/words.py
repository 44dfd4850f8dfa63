"""How sentences spell fractions and lists."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percent(fraction: float) -> str:
    """Return a fraction in whole per cent, as reports write it."""
    return f"{round(fraction * 100, 0) + 0.0:.0f} %"  # + 0.0: what rounds to -0 is 0


def at_least(fraction: float) -> str:
    """Return a lower bound in whole per cent that never says more than it."""
    return percent(math.floor(fraction * 100 + 1e-9) / 100)


def both(names: Sequence[str]) -> str:
    """Join names: "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def counted(count: int, noun: str) -> str:
    """Count things in words: "one launch", "1,200 launches", "0 steps"."""
    if count == 1:
        return f"one {noun}"
    return f"{count:,} {noun}{'es' if noun.endswith('ch') else 's'}"
