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

# Expected of products, attention, rows and launches before any step is seen. Operators that share a
# step with its weights find their caches cold: attention and small operators take twice what they
# take alone, and launches were seen to take four times (docs/benchmarks.md).
PRIOR: Factors = (1.0, 2.0, 1.0, 2.0)
# A step wanders by a tenth between processes, a factor by a quarter between machines: what the
# squared logarithm of a factor over its prior costs, in squared logarithms of misses.
_PULL = 0.2
_ROUNDS = 100
_SETTLED = 1e-9
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
    """Fit four factors by least squares of the logarithm of expected over measured.

    The logarithm of each is drawn to its prior's, so that what these steps do not tell apart stays
    as expected, and no factor is zero or many times what it stands for. Raises ValueError for fewer
    than two observations.
    """
    if len(seen) < LEAST_STEPS:
        raise ValueError("a calibration needs two measured steps or more")
    shares = np.array([[c / o.seconds for c in o.classes] for o in seen])
    products, attention, small, launch = (float(value) for value in _fitted(shares))
    return products, attention, small, launch


def _fitted(shares: np.ndarray) -> np.ndarray:
    """Descend by Gauss and Newton, each step halved until it helps."""
    log_prior = np.log(PRIOR)
    logs = log_prior.copy()
    cost = _cost(shares, logs, log_prior)
    for _ in range(_ROUNDS):
        parts = shares * np.exp(logs)
        expected = parts.sum(axis=1)
        slopes = parts / expected[:, None]  # of the logarithm of a step by those of the factors
        gradient = slopes.T @ np.log(expected) + _PULL * (logs - log_prior)
        step = np.linalg.solve(slopes.T @ slopes + _PULL * np.eye(len(logs)), gradient)
        while (lower := _cost(shares, logs - step, log_prior)) > cost and np.abs(
            step
        ).max() > _SETTLED:
            step /= 2
        if np.abs(step).max() <= _SETTLED:
            break
        logs, cost = logs - step, lower
    fitted: np.ndarray = np.exp(logs)
    return fitted


def _cost(shares: np.ndarray, logs: np.ndarray, log_prior: np.ndarray) -> float:
    misses = np.log((shares * np.exp(logs)).sum(axis=1))
    return float(misses @ misses + _PULL * ((logs - log_prior) ** 2).sum())


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
