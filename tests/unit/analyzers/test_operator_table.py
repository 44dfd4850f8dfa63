"""The document's lost table of section 3.1: operators by phase, with what binds each."""

from __future__ import annotations

import pytest
from step_rows import decode, prefill, step

from stallscope.analyzers.cost.operator_table import mean_shape, operator_rows, operator_table
from stallscope.analyzers.cost.operators import StepShape, decode_shape, prefill_shape
from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.analyzers.step.budget import cost_steps
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model

A100 = load_device("a100-sxm4-40gb")
COST = CostModel(
    load_model("llama-7b"),
    "fp16",
    "fp16",
    Machine(A100.peak_flops["fp16"], A100.memory_bytes_per_s, "datasheet"),
)


def test_rows_of_the_document() -> None:
    rows = {r.name: r for r in operator_rows("prefill", COST, prefill_shape(512))}
    q = rows["q_proj"]
    assert (q.phase, q.instances, q.bound) == ("prefill", 32, "compute")
    assert q.intensity == pytest.approx(409.6)
    assert q.time_s == pytest.approx(32 * 2 * 512 * 4096**2 / 312e12)
    # Its weights (16,777,216) and the rows in and out (512 x 8192), at 2 bytes.
    assert q.bytes == 2 * (16_777_216 + 4_194_304)
    assert rows["lm_head"].bound == "memory"  # one row
    one = {r.name: r for r in operator_rows("decode", COST, decode_shape(1, 640))}
    assert round(one["q_proj"].intensity, 2) == 1.00
    assert {r.bound for r in one.values()} == {"memory"}
    assert one["q_proj"].time_s == pytest.approx(32 * one["q_proj"].bytes / 1.555e12)


def test_the_mean_step() -> None:
    costs = cost_steps([decode(0, 1, 10), decode(1, 2, 13)], None)
    assert mean_shape(costs) == StepShape(1, 1, 12, 12)  # 11.5 rounds to even
    assert mean_shape(cost_steps([step(0, 1)], None)) is None
    assert mean_shape(()) is None


def test_the_table_of_a_run_has_its_phases() -> None:
    rows = [prefill(0, 50, 512), decode(50, 75, 513), decode(75, 100, 514)]
    table = operator_table(cost_steps(rows, COST), COST)
    assert [r.phase for r in table] == ["prefill"] * 9 + ["decode"] * 9
    total = sum(r.time_s for r in table if r.phase == "prefill")
    assert total == pytest.approx(COST.step_time(prefill_shape(512)).floor)
    assert operator_table(cost_steps(rows, None), None) == ()
    assert operator_table(cost_steps(rows[1:], COST), COST)[0].phase == "decode"
