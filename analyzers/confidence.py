"""Confidence: the estimated probability that the class is right."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.confidence_map import (
    CLASS_KNOTS,
    UNDETERMINED_KNOTS,
    Knots,
    interpolate,
)
from stallscope.analyzers.result import Grounds, Window
from stallscope.analyzers.step.limit import Decision

SETTLES = 0.5  # a class that holds this share is about to be named


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


def openness(decision: Decision) -> float:
    """Return 0 where an undetermined verdict nearly had a class, and 1 where nothing spoke."""
    return 1.0 - min(1.0, max(0.0, decision.share) / SETTLES)


def grounds(decision: Decision, windows: Sequence[Window], most: float = 1.0) -> Grounds:
    """Weigh what a decision rests on; `most` caps the confidence beside the decision's own cap."""
    cap = min(decision.cap, most)
    unexplained = min(1.0, max(0.0, decision.unexplained))
    if decision.bottleneck == "undetermined":
        far = openness(decision)
        return Grounds(decision.quality, far, 1.0, unexplained, cap, weight=far)
    apart, steady = margin(decision), stability(windows, decision.bottleneck)
    weight = decision.quality * (0.5 + 0.5 * apart) * (0.5 + 0.5 * steady)
    weight *= 1.0 - unexplained / 2
    return Grounds(decision.quality, apart, steady, unexplained, cap, weight=weight)


def knots_of(bottleneck: str) -> Knots:
    """Return the map that holds for a class, or for undetermined."""
    return UNDETERMINED_KNOTS if bottleneck == "undetermined" else CLASS_KNOTS


def confidence(decision: Decision, found: Grounds) -> float:
    """Estimate the probability that the class is right.

    The weight rises with evidence quality, margin over the runner-up and stability over windows,
    and falls with the unexplained share. For undetermined it is the probability that no class can
    be told from this evidence. How often verdicts of such a weight were right, labelled captures
    tell.
    """
    return round(min(found.most, interpolate(knots_of(decision.bottleneck), found.weight)), 2)
