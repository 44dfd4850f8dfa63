"""The work of a step, counted by hand."""

from __future__ import annotations

import pytest

from stallscope.profiler.step_work import (
    StepWork,
    causal_pairs,
    decode_work,
    mixed_work,
    prefill_work,
    warmup_work,
)


def pairs_by_counting(lengths: list[int], cached: list[int]) -> int:
    """Let each new token look at the cached ones, the earlier new ones and itself."""
    return sum(
        c + place + 1 for length, c in zip(lengths, cached, strict=True) for place in range(length)
    )


@pytest.mark.parametrize(
    ("lengths", "cached"),
    [
        ([1], [0]),
        ([512], [0]),
        ([3], [7]),
        ([4, 4], [5, 5]),
        ([4, 3], [0, 0]),
        ([2, 1, 1], [0] * 3),
    ],
)
def test_pairs_are_those_of_counting(lengths: list[int], cached: list[int]) -> None:
    counted = pairs_by_counting(lengths, cached)
    assert causal_pairs(sum(lengths), len(lengths), sum(cached)) == counted


def test_prefill() -> None:
    # 512 tokens over 100 cached: 512 × 100 + 512 × 513 / 2 = 51,200 + 131,328
    assert prefill_work(512, 1, 100) == StepWork("prefill", False, 1, 512, 0, 612, 182_528, 1)


def test_decode() -> None:
    assert decode_work(8, 5120) == StepWork("decode", False, 0, 0, 8, 5120, 5120, 8)
    assert decode_work(8, None) == StepWork("decode", False, 0, 0, 8, None, None, 8)


def test_mixed_adds_up_and_unknown_stays_unknown() -> None:
    prefill = prefill_work(64, 1, 0)  # 64 × 65 / 2 = 2080 pairs
    assert mixed_work(prefill, decode_work(7, 700)) == StepWork(
        "mixed", False, 1, 64, 7, 764, 2780, 8
    )
    assert mixed_work(prefill, decode_work(7, None)) == StepWork(
        "mixed", False, 1, 64, 7, None, None, 8
    )


def test_warmup_is_of_no_phase() -> None:
    assert warmup_work(64) == StepWork("other", True, 0, 64, 0, None, None, None)


def test_impossible_work_is_refused() -> None:
    with pytest.raises(ValueError, match="tokens=0"):
        prefill_work(0, 1, 0)
    with pytest.raises(ValueError, match="requests=3"):
        prefill_work(2, 3, 0)
    with pytest.raises(ValueError, match="cached_tokens must be from 0"):
        prefill_work(2, 1, -1)
    with pytest.raises(ValueError, match="batch=0"):
        decode_work(0, None)
    with pytest.raises(ValueError, match="context_tokens=7"):
        decode_work(8, 7)
    with pytest.raises(ValueError, match="tokens=0"):
        warmup_work(0)
