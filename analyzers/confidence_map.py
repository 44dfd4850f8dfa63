"""From the weight of evidence to how often such verdicts were right, made by tests/corpus/fit.py.

The captures of docs/corpus.md with a labelled class are few, many of them of one origin, so that
each knot is drawn to a prior that ten captures outweigh. A test fits them again and complains where
a knot has moved.
"""

from __future__ import annotations

Knots = tuple[tuple[float, float], ...]

# (weight of the evidence, share of the verdicts that were right). The ends are the prior's own: a
# class named from three or four on worthless evidence, and an engine's own word.
CLASS_KNOTS: Knots = (
    (0.0, 0.35),
    (0.332, 0.76),
    (0.592, 0.784),
    (0.7, 0.872),
    (0.968, 0.938),
    (1.0, 0.99),
)
# (how far the evidence is from settling it, share of "undetermined" that were right).
UNDETERMINED_KNOTS: Knots = ((0.0, 0.5), (0.203, 0.624), (0.986, 0.91), (1.0, 0.91))


def segment(knots: Knots, at: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the two knots between which `at` lies, or the first or the last two."""
    later = next((i for i, knot in enumerate(knots) if i and at <= knot[0]), len(knots) - 1)
    return knots[later - 1], knots[later]


def interpolate(knots: Knots, at: float) -> float:
    """Return the value at `at`, from 0 to 1, on straight lines between knots."""
    (x0, y0), (x1, y1) = segment(knots, at)
    return y0 + (y1 - y0) * ((at - x0) / (x1 - x0))
