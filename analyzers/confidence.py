"""Confidence: the estimated probability that the class is right."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.result import Window
from stallscope.analyzers.step.limit import Decision

GUESS = 0.35  # where evidence is worthless, a class named from three or four is about this sure


def stability(windows: Sequence[Window], bottleneck: str) -> float:
    """Return the share of the run's time whose own window gives the same class."""
    total = sum(w.to_s - w.from_s for w in windows)
    same = sum(w.to_s - w.from_s for w in windows if w.bottleneck == bottleneck)
    return same / total if total else 1.0


def margin(decision: Decision) -> float:
    """Return 0 at a tie and 1 where the winner has twice the runner-up's share or more."""
    if decision.share <= 0:
        return 0.0
    return min(1.0, max(0.0, decision.share / max(decision.next_share, 1e-9) - 1.0))


def confidence(decision: Decision, windows: Sequence[Window]) -> float:
    """Estimate the probability that the class is right.

    A guess's worth rises with evidence quality, margin over the runner-up, stability over windows,
    and falls with the unexplained share. For undetermined it is the probability that no class can
    be told from this evidence. The form is a prior, not yet fitted to labelled captures.
    """
    if decision.bottleneck == "undetermined":
        return round(0.5 + 0.3 * decision.quality, 2)
    unexplained = min(1.0, max(0.0, decision.unexplained))
    weight = (
        decision.quality
        * (0.5 + 0.5 * margin(decision))
        * (0.5 + 0.5 * stability(windows, decision.bottleneck))
        * (1.0 - unexplained / 2)
    )
    return round(min(decision.cap, GUESS + (1.0 - GUESS) * weight), 2)
