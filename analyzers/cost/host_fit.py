"""What an engine's host adds to a step, fitted on a few measured ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stallscope.analyzers.cost.achievable import DEFAULT, Achievable


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """Mean seconds of a decode step of `requests`, and what is expected of its device."""

    requests: int
    seconds: float
    device_s: float


def calibrated(reach: Achievable, steps: Sequence[MeasuredStep]) -> Achievable:
    """Return `reach` with the seconds per step and per request that fit these steps best.

    Least squares of the relative miss, neither part below zero. Raises ValueError for fewer than
    two sizes of the batch: nothing would tell the parts apart.
    """
    if len({step.requests for step in steps}) < 2:
        raise ValueError("a calibration needs steps of two batch sizes or more")
    both = _solved(steps)
    if min(both) < 0:
        both = min(
            (_single(steps, per_step=True), _single(steps, per_step=False)),
            key=lambda fit: _miss(steps, fit),
        )
    return replace(reach, step_s=both[0], request_s=both[1])


def _solved(steps: Sequence[MeasuredStep]) -> tuple[float, float]:
    """Solve the normal equations of Σ ((device + a + b · requests − seconds) ÷ seconds)²."""
    weights = [step.seconds**-2 for step in steps]
    rest = [step.seconds - step.device_s for step in steps]
    n = [float(step.requests) for step in steps]
    s0 = sum(weights)
    s1 = sum(w * x for w, x in zip(weights, n, strict=True))
    s2 = sum(w * x * x for w, x in zip(weights, n, strict=True))
    r0 = sum(w * r for w, r in zip(weights, rest, strict=True))
    r1 = sum(w * x * r for w, x, r in zip(weights, n, rest, strict=True))
    determinant = s0 * s2 - s1 * s1
    return (s2 * r0 - s1 * r1) / determinant, (s0 * r1 - s1 * r0) / determinant


def _single(steps: Sequence[MeasuredStep], *, per_step: bool) -> tuple[float, float]:
    sizes = [1.0 if per_step else float(step.requests) for step in steps]
    weights = [step.seconds**-2 for step in steps]
    rest = [step.seconds - step.device_s for step in steps]
    top = sum(w * x * r for w, x, r in zip(weights, sizes, rest, strict=True))
    value = max(0.0, top / sum(w * x * x for w, x in zip(weights, sizes, strict=True)))
    return (value, 0.0) if per_step else (0.0, value)


def _miss(steps: Sequence[MeasuredStep], fit: tuple[float, float]) -> float:
    return sum(
        ((step.device_s + fit[0] + fit[1] * step.requests) / step.seconds - 1) ** 2
        for step in steps
    )


def host_error(steps: Sequence[MeasuredStep]) -> float:
    """Return the mean relative miss: of batch sizes left out of the fit, where there are three."""
    sizes = sorted({step.requests for step in steps})
    misses = []
    for size in sizes:
        kept = [step for step in steps if len(sizes) < 3 or step.requests != size]
        fit = calibrated(DEFAULT, kept)
        misses += [
            abs((s.device_s + fit.step_s + fit.request_s * s.requests) / s.seconds - 1)
            for s in steps
            if s.requests == size
        ]
    return sum(misses) / len(misses)
