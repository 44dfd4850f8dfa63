"""How the time outside the floor grows with requests and prompt tokens, on rows of known slope."""

from __future__ import annotations

import pytest
from played_run import back_to_back, replay_of
from step_rows import free_model, prefill, request

from stallscope.analyzers.whatif.simulate import Overhead
from stallscope.profiler.capture import Capture, Step
from stallscope.profiler.spec import Subject


def fitted(*rows: Step) -> tuple[Overhead, Overhead]:
    subject = Subject(max_num_seqs=4, max_num_batched_tokens=64, kv_budget_bytes=10**6)
    capture = Capture(subject, steps=rows, requests=(request(0, output_tokens=4),))
    replay = replay_of(capture, free_model(), 1.0)
    return replay.low, replay.high


def test_overhead_with_known_slope() -> None:
    # 1 ms a step and half a ms a request.
    low, high = fitted(*back_to_back((1.5, 1), (2.0, 2), (3.0, 4), (5.0, 8)))
    assert low == high
    assert (low.per_step, low.per_request, low.per_token) == pytest.approx((0.001, 0.0005, 0.0))


def test_a_falling_slope_is_taken_as_none() -> None:
    low, high = fitted(*back_to_back((4.0, 1), (2.0, 4)))
    assert low == high == Overhead(per_step=pytest.approx(0.003))


def test_one_batch_size_leaves_two_ways_open() -> None:
    low, high = fitted(*back_to_back((3.0, 2), (3.0, 3), (4.0, 3)))
    # 10 ms over three steps and eight requests.
    assert low == Overhead(per_step=pytest.approx(0.010 / 3))
    assert high == Overhead(per_request=pytest.approx(0.010 / 8))


def test_prompt_tokens_get_what_decode_leaves() -> None:
    rows = back_to_back((1.5, 1), (3.0, 4))  # 1 ms and 0.5 ms a request
    low, _ = fitted(*rows, prefill(4.5, 24.5, 10))
    # 20 ms less 1 and 0.5, over ten tokens.
    assert low.per_token == pytest.approx(0.00185)
    cheap, _ = fitted(*rows, prefill(4.5, 5.0, 10))
    assert cheap.per_token == 0.0


def test_prompts_alone_pay_by_token() -> None:
    low, high = fitted(prefill(0, 20, 10), prefill(20, 50, 15))
    assert low == high == Overhead(per_token=pytest.approx(0.002))


def test_a_decode_step_without_requests_says_nothing_of_batches() -> None:
    low, high = fitted(*back_to_back((1.0, 0), (2.0, 2)))
    assert (low, high) == (
        Overhead(per_step=pytest.approx(0.002)),
        Overhead(per_request=pytest.approx(0.001)),
    )
