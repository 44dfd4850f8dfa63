"""Pairs of interleaved blocks in one process, and what their ratio is worth."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

RESAMPLES = 4000


@dataclass(frozen=True, slots=True)
class Ratio:
    """Median of the pairs' ratios, with its 95 % bootstrap interval."""

    median: float
    low: float
    high: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.median:.4f} (95 % {self.low:.4f} to {self.high:.4f}, {self.pairs} pairs)"


def interleave(
    a: Callable[[], float], b: Callable[[], float], *, pairs: int
) -> list[tuple[float, float]]:
    """Run A B, B A, A B, …; a drift of the machine then falls on both alike."""
    results = []
    for index in range(pairs):
        if index % 2:
            second = b()
            results.append((a(), second))
        else:
            first = a()
            results.append((first, b()))
    return results


def ratio(pairs: Sequence[tuple[float, float]], *, seed: int = 0) -> Ratio:
    """Summarise a / b over the pairs."""
    ratios = [a / b for a, b in pairs]
    rng = random.Random(seed)
    medians = sorted(
        statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES)
    )
    low, high = medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES) - 1]
    return Ratio(statistics.median(ratios), low, high, len(ratios))
