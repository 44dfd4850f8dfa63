"""The benchmark of recording's cost, on steps whose cost is known."""

from __future__ import annotations

import random

import pytest
from recording_cost import TimedStep, recording_cost

BARE_S = 0.010


def block(
    rng: random.Random, *, caller: float, thread_every: int = 0, thread_s: float = 0.0
) -> list[TimedStep]:
    """200 pairs on a machine whose speed wanders by a fifth; a thread runs now and then."""
    steps, speed = [], rng.uniform(0.9, 1.1)
    for index in range(400):
        speed = min(1.1, max(0.9, speed + rng.uniform(-0.005, 0.005)))
        recorded = index % 2 == (index // 2) % 2
        ran = thread_s if thread_every and index % thread_every == 0 else 0.0
        step_s = BARE_S * speed * (1 + caller * recorded) * rng.uniform(0.97, 1.03) + ran
        steps.append(TimedStep(recorded, step_s, ran))
    return steps


def blocks(**costs: float) -> list[list[TimedStep]]:
    rng = random.Random(7)
    return [block(rng, **costs) for _ in range(20)]  # type: ignore[arg-type]


def test_nothing_costs_nothing() -> None:
    found = recording_cost(blocks(caller=0.0), resamples=400)
    assert found.low < 1.0 < found.high
    assert found.ratio == pytest.approx(1.0, abs=0.001)
    assert (found.threads, found.pairs) == (0.0, 4000)
    assert found.step_s == pytest.approx(BARE_S, rel=0.05)


def test_the_caller_and_the_threads_are_told_apart_and_added() -> None:
    # 2 % of each recorded step; and 1 ms in every 50th step of 10.1 ms on average: 0.2 %.
    found = recording_cost(blocks(caller=0.02, thread_every=50, thread_s=0.001), resamples=400)
    assert found.caller == pytest.approx(0.02, abs=0.001)
    assert found.threads == pytest.approx(0.001 / 50 / 0.0101, abs=0.0003)
    assert found.ratio == pytest.approx(1 + found.caller + found.threads)
    assert found.low < found.ratio < found.high < 1.024


def test_a_thread_that_always_runs_leaves_nothing_to_compare() -> None:
    with pytest.raises(ValueError, match="ran in every pair"):
        recording_cost(blocks(caller=0.0, thread_every=1, thread_s=0.001), resamples=1)
