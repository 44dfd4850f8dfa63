"""Where more load stops paying: the knee of a row of loads, and what it says in a sentence."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.profiler.wording import figure

# Added load buys at least this share of its own proportion in tokens per second, or it is past the
# knee: doubling the load must raise throughput by half.
MARGINAL = 0.5
# TTFT takes off where it grows more than this many times as fast as the load.
TAKE_OFF = 2.0
_FEWEST = 3  # loads, for a knee to lie between


@dataclass(frozen=True, slots=True)
class Point:
    """One load, and what came of it."""

    load: float
    tokens_per_s: float
    ttft_s: float | None


def marginal(
    a: tuple[float | None, float | None], b: tuple[float | None, float | None]
) -> float | None:
    """Return relative growth of tokens per second over relative growth of load."""
    (load, tokens), (more, after) = a, b
    if not load or not tokens or more is None or after is None or more <= load:
        return None
    return (after / tokens - 1.0) / (more / load - 1.0)


def knee_of(points: Sequence[Point]) -> tuple[float | None, str]:
    """Return the last load before throughput flattens or TTFT takes off, and which it was."""
    if len(points) < _FEWEST:
        return None, "few"
    for a, b in itertools.pairwise(points):
        gain = marginal((a.load, a.tokens_per_s), (b.load, b.tokens_per_s))
        if gain is not None and gain < MARGINAL:
            return a.load, "flat"
        if a.ttft_s and b.ttft_s and b.ttft_s / a.ttft_s > TAKE_OFF * b.load / a.load:
            return a.load, "ttft"
    return None, "open"


def knee_sentence(points: Sequence[Point], knee: float | None, why: str, axis: str) -> str:
    """Say where the knee of loads on an axis is, and what the next load buys and costs."""
    if why == "few":
        return f"Fewer than {_FEWEST} loads of one workload tell no knee: measure more of them."
    if knee is None:
        last = points[-1]
        return (
            f"No knee up to {axis} {figure(last.load, 4)}: {figure(last.tokens_per_s)} output "
            "tokens/s still grow nearly with the load."
        )
    at = next(p for p in points if p.load == knee)
    after = points[points.index(at) + 1]
    text = f"The knee is at {axis} {figure(knee, 4)} with {figure(at.tokens_per_s)} output tokens/s"
    if why == "ttft":
        return f"{text}: at {figure(after.load, 4)} TTFT takes off{_ttft_text(at, after)}."
    change = after.tokens_per_s / at.tokens_per_s - 1.0
    added = after.load / at.load - 1.0
    return (
        f"{text}: {100 * added:.0f} % more load after it buys {100 * change:+.0f} % tokens/s"
        f"{_ttft_text(at, after).replace(', from', ', and TTFT goes from')}."
    )


def _ttft_text(at: Point, after: Point) -> str:
    if not at.ttft_s or not after.ttft_s:
        return ""
    return f", from {figure(at.ttft_s)} to {figure(after.ttft_s)} s"
