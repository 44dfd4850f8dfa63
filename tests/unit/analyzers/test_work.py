"""MFU and MBU against their definition, from totals counted by hand."""

from __future__ import annotations

import dataclasses

import pytest
from step_rows import TINY, decode, prefill, step

from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.analyzers.cost.work import mbu, mfu, work_of
from stallscope.analyzers.step.budget import cost_steps

MACHINE = Machine(peak_flops=1e9, bytes_per_s=1e8, kind="achievable")
COST = CostModel(TINY, "fp16", "fp16", MACHINE)
LINEARS = 3 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 160)  # elements in the blocks
HEAD = 64 * 256


def test_work_of_two_decode_steps() -> None:
    costs = cost_steps([decode(0, 10, 20), decode(10, 30, 21)], COST)
    work = work_of(costs, COST)
    assert work is not None
    assert work.weight_bytes == 2 * 2 * (LINEARS + HEAD)  # read in each of two steps, 2 bytes each
    assert work.kv_bytes == 3 * 2 * 32 * 2 * (20 + 21)  # layers x K and V x width x bytes x keys
    assert work.flops == 2 * 2 * (LINEARS + HEAD) + 3 * 4 * 64 * (20 + 21)
    assert work.time_s == pytest.approx(0.030)
    # 581,632 + 15,744 bytes in 30 ms of 100 MB/s; 581,632 + 31,488 FLOPs in 30 ms of 1 GFLOP/s.
    assert mbu(work, COST).value == pytest.approx(597_376 / 3e6)
    assert mfu(work, COST).value == pytest.approx(613_120 / 3e7)
    assert (mbu(work, COST).side, mfu(work, COST).provenance) == ("lower", "bound")


def test_a_chunk_that_samples_nothing_does_not_read_the_head() -> None:
    costs = cost_steps([prefill(0, 5, 8, logit_rows=0)], COST)
    work = work_of(costs, COST)
    assert work is not None
    assert work.weight_bytes == 2 * LINEARS
    assert work.flops == 2 * 8 * LINEARS + 3 * 4 * 64 * 36


def test_unknown_work_is_none() -> None:
    known, unknown = decode(0, 1, 4), step(1, 2)
    assert work_of(cost_steps([known, unknown], COST), COST) is None
    assert work_of([], COST) is None


def test_ranks_raise_what_the_device_could_do() -> None:
    costs = cost_steps([decode(0, 10, 20)], COST)
    work = work_of(costs, COST)
    two = CostModel(TINY, "fp16", "fp16", dataclasses.replace(MACHINE, ranks=2))
    assert work is not None
    assert mbu(work, two).value == pytest.approx(mbu(work, COST).value / 2)
    assert mfu(work, two).value == pytest.approx(mfu(work, COST).value / 2)
