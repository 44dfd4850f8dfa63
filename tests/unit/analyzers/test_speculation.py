"""Speculative decoding against hand arithmetic."""

from __future__ import annotations

import pytest
from step_rows import TINY

from stallscope.analyzers.cost.operators import StepShape, decode_shape
from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.analyzers.cost.speculation import checking_shape, speculate, tokens_per_step

MEMORY = CostModel(TINY, "fp16", "fp16", Machine(1e15, 1e6, "datasheet"))
ARITHMETIC = CostModel(TINY, "fp16", "fp16", Machine(1e6, 1e15, "datasheet"))


def test_tokens_of_a_step() -> None:
    assert tokens_per_step(1, 0.5) == 1.5
    assert tokens_per_step(3, 0.5) == 1 + 0.5 + 0.25 + 0.125
    assert (tokens_per_step(4, 0.0), tokens_per_step(4, 1.0)) == (1.0, 5.0)


def test_checking_reads_the_cache_once_and_samples_every_row() -> None:
    # Two requests at ten tokens, three drafted each: four rows over 9 earlier keys see 10 to 13.
    assert checking_shape(2, 10, 3) == StepShape(8, 8, 2 * 13, 2 * (10 + 11 + 12 + 13))
    assert checking_shape(2, 10, 0) == decode_shape(2, 10)


def test_where_memory_binds_checking_is_nearly_free() -> None:
    found = speculate(MEMORY, batch=1, context=10, drafted=3, acceptance=0.5)
    assert found.plain_s == MEMORY.step_time(decode_shape(1, 10)).floor
    assert found.plain_s < found.step_s < 1.1 * found.plain_s
    assert found.speedup == pytest.approx(1.875 * found.plain_s / found.step_s)
    assert 1.7 < found.speedup < 1.875


def test_where_arithmetic_binds_it_only_costs() -> None:
    found = speculate(ARITHMETIC, batch=1, context=10, drafted=3, acceptance=0.5)
    # Four rows of arithmetic for 1.875 tokens.
    assert found.step_s == pytest.approx(4 * found.plain_s, rel=0.02)
    assert found.speedup < 0.5


def test_a_draft_model_and_the_host_take_their_time() -> None:
    found = speculate(
        MEMORY, batch=1, context=10, drafted=3, acceptance=0.5, draft=MEMORY, host_s=1.0
    )
    step = MEMORY.step_time(decode_shape(1, 10)).floor
    assert found.draft_s == pytest.approx(3 * step)
    assert found.plain_s == pytest.approx(step + 1.0)
    assert found.tpot_s == pytest.approx((found.step_s + 3 * step) / 1.875)


@pytest.mark.parametrize(("drafted", "acceptance"), [(0, 0.5), (2, 1.5), (2, -0.1)])
def test_what_makes_no_sense_is_refused(drafted: int, acceptance: float) -> None:
    with pytest.raises(ValueError, match="cannot draft"):
        speculate(MEMORY, batch=1, context=10, drafted=drafted, acceptance=acceptance)
