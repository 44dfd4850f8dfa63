"""Loads: lengths, arrivals, prompts."""

from __future__ import annotations

import pytest

from stallscope.errors import UsageError
from stallscope.runner.workload import (
    Arrival,
    ClosedLoop,
    OpenLoop,
    RequestSize,
    parse_lengths,
    poisson_times_ns,
    prompt,
    random_sizes,
)

SIZE = RequestSize(8, 4)


def test_kv_tokens_leave_out_the_last_generated_token() -> None:
    assert SIZE.kv_tokens == 11


def test_closed_loop_sends_one_for_one() -> None:
    load = ClosedLoop([SIZE] * 5, concurrency=2)
    assert load.due(0, finished=0) == (Arrival(0, 0, SIZE), Arrival(1, 0, SIZE))
    assert load.due(5, finished=0) == ()
    assert load.due(9, finished=1) == (Arrival(2, 9, SIZE),)
    assert load.due(12, finished=4) == (Arrival(3, 12, SIZE), Arrival(4, 12, SIZE))
    assert load.due(15, finished=5) == ()
    assert load.next_arrival_ns() is None


def test_open_loop_sends_by_the_clock_alone() -> None:
    load = OpenLoop([SIZE] * 3, times_ns=(10, 20, 20))
    assert load.due(9, finished=0) == ()
    assert load.next_arrival_ns() == 10
    assert load.due(10, finished=0) == (Arrival(0, 10, SIZE),)
    assert load.next_arrival_ns() == 20
    assert load.due(1000, finished=0) == (Arrival(1, 20, SIZE), Arrival(2, 20, SIZE))
    assert load.next_arrival_ns() is None


@pytest.mark.parametrize(
    ("text", "bounds"), [("128", (128, 128)), ("1:9", (1, 9)), ("7:7", (7, 7))]
)
def test_lengths_are_a_number_or_a_range(text: str, bounds: tuple[int, int]) -> None:
    assert parse_lengths(text, "--input-tokens") == bounds


@pytest.mark.parametrize("text", ["0", "-3", "9:1", "0:4", "4:", ":4", "a", "1.5", "1:2:3", ""])
def test_other_lengths_are_refused_by_option(text: str) -> None:
    with pytest.raises(UsageError, match="--input-tokens"):
        parse_lengths(text, "--input-tokens")


def test_random_sizes_stay_in_range_and_follow_the_seed() -> None:
    drawn = random_sizes((10, 12), (3, 3), count=300, seed=1)
    assert {size.input_tokens for size in drawn} == {10, 11, 12}
    assert {size.output_tokens for size in drawn} == {3}
    assert drawn == random_sizes((10, 12), (3, 3), count=300, seed=1)
    assert drawn != random_sizes((10, 12), (3, 3), count=300, seed=2)


def test_poisson_gaps_have_the_rates_mean_and_spread() -> None:
    times = poisson_times_ns(50.0, count=20_000, seed=3)
    gaps = [b - a for a, b in zip((0, *times), times, strict=False)]
    assert min(gaps) >= 0
    # Exponential gaps: mean 20 ms, and 1/e = 36.8 % of them longer than the mean. Over 20,000
    # draws four standard errors are 0.57 ms and 1.4 points.
    assert sum(gaps) / len(gaps) == pytest.approx(20e6, abs=0.57e6)
    longer = sum(gap > 20e6 for gap in gaps) / len(gaps)
    assert longer == pytest.approx(0.368, abs=0.014)


def test_prompts_differ_by_request_and_repeat_by_seed() -> None:
    first = prompt(0, 40, vocab_size=100, seed=5)
    assert len(first) == 40
    assert all(0 <= token < 100 for token in first)
    assert first == prompt(0, 40, vocab_size=100, seed=5)
    assert first != prompt(1, 40, vocab_size=100, seed=5)
