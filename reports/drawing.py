"""Bars and strips in block characters."""

from __future__ import annotations

import math
from collections.abc import Iterable

_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")


def draw_bar(fraction: float, width: int) -> str:
    """Return a bar in eighths of a cell: empty below zero, full above one."""
    eighths = round(max(0.0, min(1.0, fraction)) * width * 8) if math.isfinite(fraction) else 0
    whole, rest = divmod(eighths, 8)
    return "█" * whole + _EIGHTHS[rest]


def draw_strip(spans: Iterable[tuple[float, float]], width: int) -> str:
    """Return a line of `width` cells, filled wherever a span touches one, however short."""
    cells = ["·"] * width
    for start, end in spans:
        first = min(width - 1, math.floor(start * width))
        for index in range(first, max(first + 1, math.ceil(end * width))):
            cells[min(index, width - 1)] = "█"
    return "".join(cells)
