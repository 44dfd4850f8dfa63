"""Whether prompts were taken in at a steady rate, whatever the grain of what counted them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

_LEAST = 3  # fewer intervals, or fewer of them with prompts, show no rate
_MOST = 12
_JUMPS = 6  # jumps of a counter that a stretch must hold: one more or less is then noise
_FLAT = 0.25  # a rate whose spread is within this fraction of its mean is flat


def is_flat(intervals: Sequence[tuple[int, float]]) -> bool:
    """Tell whether (nanoseconds, tokens) intervals add up to a steady rate.

    Engines count a prompt when it is finished, so short intervals hold none or a whole one: they
    are joined into stretches of several.
    """
    moves = sum(tokens > 0 for _, tokens in intervals)
    if len(intervals) < _LEAST or moves < _LEAST:
        return False
    stretches = max(_LEAST, min(_MOST, moves // _JUMPS))
    reached = np.concatenate([[0.0], np.cumsum([float(ns) for ns, _ in intervals])])
    taken = np.concatenate([[0.0], np.cumsum([tokens for _, tokens in intervals])])
    edges = np.linspace(0.0, reached[-1], stretches + 1)
    rates = [float(r) for r in np.diff(np.interp(edges, reached, taken))]
    mean = statistics.fmean(rates)
    return mean > 0 and statistics.pstdev(rates) <= _FLAT * mean
