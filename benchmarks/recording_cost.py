"""What recording costs, from steps with and without it and from what its threads did meanwhile.

A machine's memory speed wanders by some per cent within a second, so blocks of a second that take
turns need half an hour to tell 1 %. Steps that take turns one by one need a minute. But a
recorder's threads cannot be switched off for every other step. So the cost is the sum of two:

- the caller's: the median of recorded / bare over pairs of neighbouring steps in which none of the
  recorder's threads ran;
- the threads': by how much the steps in which one of them ran, recorded or not, took longer than
  the steps of their own kind around them, in sum, over the time of all steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 4000
RAN_S = 5e-6  # less CPU time than this between two steps is a timer that was looked at
AROUND = 12  # steps before and after

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TimedStep:
    """A step's time, and how much CPU time the recorder's threads took in it."""

    recorded: bool
    step_s: float
    threads_s: float


@dataclass(frozen=True, slots=True)
class RecordingCost:
    """Time with recording / time without, with its 95 % bootstrap interval; and its two parts."""

    ratio: float
    low: float
    high: float
    caller: float
    threads: float
    pairs: int
    step_s: float

    def __str__(self) -> str:
        return (
            f"recorded / bare {self.ratio:.4f} (95 % {self.low:.4f} to {self.high:.4f}, "
            f"{self.pairs} pairs of steps of {self.step_s * 1e3:.2f} ms); "
            f"caller {self.caller:+.2%}, threads {self.threads:+.2%}"
        )


def recording_cost(
    blocks: Sequence[Sequence[TimedStep]], *, resamples: int = RESAMPLES, seed: int = 0
) -> RecordingCost:
    """Sum the two over blocks of steps, which come in pairs of one recorded and one bare.

    The interval is from blocks drawn with replacement, as neighbouring steps are alike. A block
    without a pair in which no thread ran counts for the threads alone; all such raise ValueError.
    """
    ratios = [_quiet_ratios(block) for block in blocks]
    excess_s, total_s = (np.array(column) for column in zip(*map(_threads, blocks), strict=True))

    def parts(chosen: NDArray[np.intp]) -> tuple[float, float]:
        pooled = np.concatenate([ratios[index] for index in chosen])
        if not pooled.size:
            raise ValueError("the recorder's threads ran in every pair of steps")
        return float(np.median(pooled)) - 1.0, excess_s[chosen].sum() / total_s[chosen].sum()

    everything = np.arange(len(blocks))
    caller, threads = parts(everything)
    rng = np.random.default_rng(seed)
    sums = [sum(parts(rng.choice(everything, len(blocks)))) for _ in range(resamples)]
    low, high = np.quantile(sums, (0.025, 0.975))
    bare_s = [step.step_s for block in blocks for step in block if not step.recorded]
    pairs = sum(map(len, blocks)) // 2
    return RecordingCost(
        1 + caller + threads, 1 + low, 1 + high, caller, threads, pairs, float(np.median(bare_s))
    )


def _quiet_ratios(block: Sequence[TimedStep]) -> Floats:
    """Return recorded / bare of each pair in which no thread ran."""
    ratios = []
    for first, second in zip(block[::2], block[1::2], strict=True):
        if first.threads_s < RAN_S and second.threads_s < RAN_S:
            on, off = (first, second) if first.recorded else (second, first)
            ratios.append(on.step_s / off.step_s)
    return np.array(ratios)


def _threads(block: Sequence[TimedStep]) -> tuple[float, float]:
    """Return how much longer the steps took in which a thread ran, and all steps' time."""
    excess_s = 0.0
    for index, step in enumerate(block):
        if step.threads_s >= RAN_S:
            around = block[max(0, index - AROUND) : index + AROUND + 1]
            alike = [
                s.step_s for s in around if s.recorded == step.recorded and s.threads_s < RAN_S
            ]
            if alike:
                excess_s += step.step_s - sum(alike) / len(alike)
    return excess_s, sum(step.step_s for step in block)
