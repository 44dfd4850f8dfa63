"""A steady intake of prompts, seen through counters of any grain."""

from __future__ import annotations

import pytest

from stallscope.analyzers.load.prompt_rate import is_flat

S = 1_000_000_000


def counted(every_s: float) -> list[tuple[int, float]]:
    """A minute of 24,000 tokens/s in prompts of 40,000 that count when they are finished."""
    count = round(60 / every_s) + 1
    done = [int(i * every_s * 24_000 // 40_000) * 40_000 for i in range(count)]
    return [(round(every_s * S), b - a) for a, b in zip(done, done[1:], strict=False)]


@pytest.mark.parametrize("every_s", [0.1, 1, 2, 5, 10])
def test_the_grain_of_the_counter_is_not_the_rate(every_s: float) -> None:
    assert is_flat(counted(every_s))


def test_a_rate_that_halves_or_comes_in_bursts_is_not_flat() -> None:
    assert not is_flat([(S, 100.0)] * 10 + [(S, 40.0)] * 10)
    assert not is_flat(([(S, 100.0)] * 6 + [(S, 0.0)] * 6) * 2)
    assert is_flat([(S, 100.0), (S, 90.0), (S, 110.0), (S, 100.0)])


def test_unequal_intervals_are_weighed_by_their_length() -> None:
    assert is_flat([(S, 100.0), (2 * S, 200.0), (3 * S, 300.0), (S, 100.0), (S, 100.0)])


def test_too_little_to_tell() -> None:
    assert not is_flat([])
    assert not is_flat([(S, 100.0)] * 2)
    assert is_flat([(S, 100.0)] * 3)
    assert not is_flat([(S, 100.0)] * 3 + [(S, 0.0)])  # three jumps
    assert not is_flat([(S, 0.0)] * 20)
