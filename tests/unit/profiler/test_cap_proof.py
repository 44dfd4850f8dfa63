"""A cap that running requests show so plainly that a higher one cannot have held the queue."""

from __future__ import annotations

import pytest

from stallscope.profiler.cap_proof import is_proven
from stallscope.profiler.held_queue import Moment

# Ten run and five wait. A request holds 0.083 of the pool on average, and 0.17 is free: two fit.
USED = 0.83
HELD: Moment = {
    "running": 10,
    "waiting": 5,
    "kv_used_fraction": USED,
    "ttft_s_count": 50,
    "finished_total": 40,
}


def series(count: int = 4, **changed: float) -> list[Moment]:
    return [{**HELD, "output_tokens_total": 60 * i, **changed} for i in range(count)]


def test_four_moments_with_no_prompt_in_work_prove_it() -> None:
    assert is_proven(series(4), 10)
    assert not is_proven(series(3), 10)


@pytest.mark.parametrize(
    "changed",
    [
        {"running": 9},  # not at the highest number
        {"waiting": 0},
        {"ttft_s_count": 49},  # one of the ten is still being prefilled: long prompts hold others
        {"kv_used_fraction": 0.84},  # 2 · 0.084 are more than 0.16: the head may need as much
        {"output_tokens_total": 60},  # a standstill
        {"waiting_deferred": 3},  # of five: the engine itself puts most of them off
    ],
)
def test_something_else_may_have_held_them(changed: Moment) -> None:
    assert not is_proven(series(9, **changed), 10)


def test_a_minority_that_is_put_off_does_not_matter() -> None:
    assert is_proven(series(waiting_deferred=2), 10)


def test_others_let_in_and_running_back_at_the_number_prove_it_too() -> None:
    """A log counts no first tokens. Five moments hold four stretches between them."""
    plain = [
        {
            "running": 10.0,
            "waiting": 5.0,
            "kv_used_fraction": 0.3,
            "input_tokens_total": 700.0 * i,
        }
        for i in range(5)
    ]
    assert is_proven(plain, 10)
    assert not is_proven(plain[:4], 10)
    closed = [{**m, "input_tokens_total": 700.0} for m in plain]
    assert not is_proven(closed, 10)  # one long prompt may have been in work all the time


@pytest.mark.parametrize("name", ["kv_used_fraction", "ttft_s_count", "finished_total"])
def test_what_is_not_told_proves_nothing(name: str) -> None:
    assert not is_proven([{k: v for k, v in m.items() if k != name} for m in series(9)], 10)
