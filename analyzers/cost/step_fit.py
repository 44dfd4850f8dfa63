"""A calibration fitted on measured steps: what each class of operators takes of its estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stallscope.analyzers.cost.calibrated import class_seconds
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.step.shape import computed_shape
from stallscope.profiler.capture import Step

Factors = tuple[float, float, float, float]

# What three runs do not tell apart stays near the estimate: the pull of a tenth of a miss.
_PULL = 0.1
_ROUNDS = 2000
LEAST_STEPS = 2


@dataclass(frozen=True, slots=True)
class Observation:
    """A usual step of one run and phase: its seconds, and its estimate by class."""

    run: int
    seconds: float
    classes: tuple[float, ...]


def observations(run: int, cost: CostModel, steps: Sequence[Step]) -> tuple[Observation, ...]:
    """Return the step of median length of each phase, where its work is known."""
    found = []
    for phase in ("prefill", "decode"):
        known = [s for s in steps if s.phase == phase and not s.warmup]
        known = [s for s in known if computed_shape(s, cost.spec.sliding_window) is not None]
        if not known:
            continue
        known.sort(key=lambda s: s.end_ns - s.start_ns)
        usual = known[(len(known) - 1) // 2]
        shape = computed_shape(usual, cost.spec.sliding_window)
        if shape is not None:
            seconds = (usual.end_ns - usual.start_ns) * 1e-9
            found.append(Observation(run, seconds, class_seconds(cost, shape).columns))
    return tuple(found)


def fit_factors(seen: Sequence[Observation]) -> Factors:
    """Fit four factors, none below zero, by least squares of the relative miss.

    Each is drawn to one, so that what these steps do not tell stays as estimated. Raises ValueError
    for fewer than two observations.
    """
    if len(seen) < LEAST_STEPS:
        raise ValueError("a calibration needs two measured steps or more")
    rows = np.array([[c / o.seconds for c in o.classes] for o in seen])
    # The pull is in the same unit as a miss: a factor off by one costs a tenth of its largest part.
    pulls = _PULL * np.diag(np.maximum(rows.max(axis=0), 1e-6))
    matrix = np.vstack([rows, pulls])
    wanted = np.concatenate([np.ones(len(seen)), np.diag(pulls)])
    return _least_squares(matrix, wanted)


def _least_squares(matrix: np.ndarray, wanted: np.ndarray) -> Factors:
    """Solve by coordinates in turn, each held at zero or above; the problem is convex."""
    normal, target = matrix.T @ matrix, matrix.T @ wanted
    x = np.ones(len(target))
    for _ in range(_ROUNDS):
        for i in range(len(x)):
            rest = target[i] - normal[i] @ x + normal[i, i] * x[i]
            x[i] = max(0.0, rest / normal[i, i])
    products, attention, small, launch = (float(value) for value in x)
    return products, attention, small, launch


def predicted(factors: Factors, seen: Observation) -> float:
    """Return the seconds that a calibration gives to a step."""
    return sum(f * c for f, c in zip(factors, seen.classes, strict=True))


def fit_error(seen: Sequence[Observation]) -> float:
    """Return the mean relative miss: of runs left out of the fit, where there are three or more."""
    runs = sorted({o.run for o in seen})
    misses = []
    for run in runs:
        kept = [o for o in seen if len(runs) < 3 or o.run != run]
        factors = fit_factors(kept)
        misses += [abs(predicted(factors, o) / o.seconds - 1) for o in seen if o.run == run]
    return sum(misses) / len(misses)
