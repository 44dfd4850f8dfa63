"""Runs that others published lie within what a plan's error allows."""

from __future__ import annotations

import pytest
from published_runs import RUNS, Run, expected_ms, model_of

from stallscope.analyzers.cost.arithmetic import step_weight_bytes


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.model}-{run.device}-{run.at_once}")
def test_a_published_run_lies_within_the_interval(run: Run) -> None:
    found = expected_ms(run)
    assert found.least <= run.tpot_ms <= found.most
    assert found.best <= found.expected


def test_a_floor_by_hand_and_the_one_run_that_is_below_it() -> None:
    """gpt-oss-120b reads 5.00 GB a token: bf16 attention and head, four of 128 experts in mxfp4.

    36 layers of 2880 · (2 · 4096 + 2 · 512) and a router of 2880 · 128, all of two bytes; a head of
    201,088 · 2880; four experts of 3 · 2880² at 17/32 of a byte.
    """
    (run,) = (run for run in RUNS if (run.model, run.device) == ("gpt-oss-120b", "gb10"))
    layer = 2 * 2880 * (2 * 4096 + 2 * 512 + 128) + 4 * 3 * 2880**2 * 17 / 32
    read = 36 * layer + 2 * 201_088 * 2880
    assert step_weight_bytes(model_of(run), "mxfp4") == pytest.approx(read)
    # K and V of 8 heads of 64 in 18 layers at 1,088 tokens, and in 18 that see 128.
    cached = 2 * 2 * 8 * 64 * 18 * (1088 + 128)
    assert (read + cached) / 273e9 * 1e3 == pytest.approx(expected_ms(run).best, rel=0.002)
    # Faster than that: the recipe stores attention and head in mxfp4 too, and says so.
    below = [run for run in RUNS if run.tpot_ms < expected_ms(run).best]
    assert below == [run]
    assert "mxfp4 too" in run.engine
