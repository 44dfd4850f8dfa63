"""What plots draw: no stall lost to reduction, and the run's place under the roof by hand."""

from __future__ import annotations

import dataclasses

import pytest
from step_rows import TINY, decode, prefill, step

from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.analyzers.series import MAX_POINTS, build_series
from stallscope.analyzers.step.budget import cost_steps

COST = CostModel(TINY, "fp16", "fp16", Machine(1e9, 1e8, "datasheet"))


def test_points_of_the_timeline() -> None:
    rows = [
        prefill(5, 15, 8, kv_used_bytes=25, kv_total_bytes=100, running=1, waiting=2),
        decode(15, 17, 9, kv_total_bytes=100, running=3),
        step(20, 21, phase="other", kv_used_bytes=7),
    ]
    points = build_series(cost_steps(rows, None), None).timeline
    assert [(p.t_s, p.duration_s) for p in points] == [
        (pytest.approx(t), pytest.approx(d))
        for t, d in [(0, 0.010), (0.010, 0.002), (0.015, 0.001)]
    ]
    # A share is known only where both numbers are.
    assert [(p.phase, p.kv_used, p.running, p.waiting) for p in points] == [
        ("prefill", 0.25, 1, 2),
        ("decode", None, 3, None),
        ("other", None, None, None),
    ]
    assert build_series((), None).timeline == ()


@pytest.mark.parametrize("count", [4999, 5000, 5001, 12_345])
def test_a_long_run_is_reduced_and_keeps_its_stalls(count: int) -> None:
    rows = [step(i, i + 0.5) for i in range(count)]
    stalls = (7, count // 2, count - 1)
    for i in stalls:
        rows[i] = rows[i]._replace(end_ns=rows[i].start_ns + 900_000)
    points = build_series(cost_steps(rows, None), None).timeline
    # Every third of 12,345 is 4115, every second of 5001 is 2501.
    assert len(points) == {4999: 4999, 5000: 5000, 5001: 2501, 12_345: 4115}[count]
    assert len(points) <= MAX_POINTS
    long = [p.t_s for p in points if p.duration_s > 0.0006]
    assert long == pytest.approx([i * 1e-3 for i in stalls])


def test_the_roof_and_the_runs_points_by_hand() -> None:
    machine = dataclasses.replace(COST.machine, ranks=2, kind="achievable")
    cost = CostModel(TINY, "fp16", "fp16", machine)
    rows = [decode(0, 10, 20), prefill(10, 14, 8)]
    roofline = build_series(cost_steps(rows, cost), cost).roofline
    assert roofline is not None
    assert (roofline.peak_flops, roofline.peak_bytes_per_s, roofline.kind) == (
        2e9,
        2e8,
        "achievable",
    )
    assert roofline.ridge == 10.0
    assert [p.label for p in roofline.points] == ["prefill", "decode"]
    # 129,024 elements in the blocks, 16,384 in the head; 2 FLOPs and 2 bytes each.
    decode_flops = 2 * 145_408 + 3 * 4 * 64 * 20
    decode_bytes = 2 * 145_408 + 3 * 2 * 32 * 2 * 20
    prefill_flops = 2 * (8 * 129_024 + 16_384) + 3 * 4 * 64 * 36
    prefill_bytes = 2 * 145_408 + 3 * 2 * 32 * 2 * 8
    assert [(p.intensity, p.flops_per_s) for p in roofline.points] == [
        (pytest.approx(prefill_flops / prefill_bytes), pytest.approx(prefill_flops / 0.004)),
        (pytest.approx(decode_flops / decode_bytes), pytest.approx(decode_flops / 0.010)),
    ]


def test_no_roof_without_a_model_and_no_point_without_work() -> None:
    assert build_series(cost_steps([decode(0, 1, 2)], None), None).roofline is None
    roofline = build_series(cost_steps([step(0, 1)], COST), COST).roofline
    assert roofline is not None
    assert roofline.points == ()
