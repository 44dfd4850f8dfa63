"""Calibrations on steps whose factors are known, and what they refuse."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import product

import pytest
from step_rows import TINY, decode, prefill

from stallscope.analyzers.cost.calibrated import CalibratedModel, calibrated_model, class_seconds
from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.learn import learn
from stallscope.analyzers.cost.operators import decode_shape, prefill_shape
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.cost.run_mark import run_mark
from stallscope.analyzers.cost.step_fit import Observation, fit_error, fit_factors, predicted
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.plan.options import PlanOptions
from stallscope.analyzers.plan.planner import plan
from stallscope.profiler.capture import Capture
from stallscope.profiler.devices import load_device
from stallscope.profiler.spec import Calibration, DeviceSpec, ProductTime, Subject
from stallscope.reports.plan_report import render_json

TRUTH = (1.2, 3.0, 2.0, 1.5)
MINE = DeviceSpec(
    "mine",
    {"fp32": 1e10},
    1 << 30,
    1e9,
    "achievable",
    is_cpu=True,
    products=tuple(
        ProductTime("fp32", 64, 64, rows, 1e-6 * rows**0.5) for rows in (1, 4, 16, 64, 256)
    ),
    launch_s=2e-6,
)


def cost_on(device: DeviceSpec) -> CostModel:
    cost = build_cost_model(Capture(subject=Subject(TINY, device, 1, "fp32", "fp32")))
    assert isinstance(cost, CostModel)
    return cost


def seconds(cost: CostModel, shape_of: object, factors: tuple[float, ...] = TRUTH) -> float:
    columns = class_seconds(cost, shape_of).columns  # type: ignore[arg-type]
    return sum(f * s for f, s in zip(factors, columns, strict=True))


def run_of(tokens: int, *, slower: float = 1.0) -> Capture:
    """A prompt, and three decode steps of which the middle one is as the truth says."""
    cost = cost_on(MINE)
    prompt = 1e3 * slower * seconds(cost, prefill_shape(tokens))
    one = 1e3 * slower * seconds(cost, decode_shape(1, tokens + 1))
    steps = (
        prefill(0, prompt, tokens),
        decode(prompt, prompt + one, tokens + 1),
        decode(prompt + one, prompt + one + 9 * one, tokens + 1),
        decode(prompt + 10 * one, prompt + 10.5 * one, tokens + 1),
    )
    return Capture(Subject(TINY, MINE, 1, "fp32", "fp32", engine="builtin"), steps=steps)


def test_the_classes_of_a_decode_step_by_hand() -> None:
    """Three layers of hidden 64, MLP 160, 4 + 2 heads of 16, vocabulary 256; one row, 10 keys."""
    found = class_seconds(cost_on(MINE), decode_shape(1, 10))
    # One product of 64 · 64 elements takes 1 µs: qkv 64 · 128, o 64 · 64, gate and up 2 · 64 · 160,
    # down 160 · 64, in three layers; the head 64 · 256. The one shape scales with elements.
    layer = 64 * 128 + 64 * 64 + 3 * 64 * 160
    assert found.products == pytest.approx((3 * layer + 64 * 256) / 4096 * 1e-6)
    # Two KV heads, keys and values, 16 elements of 4 bytes, 10 keys; queries in, outputs out.
    assert found.attention == pytest.approx(3 * (2 * 2 * 16 * 4 * 10 + 2 * 64 * 4) / 1e9)
    assert found.rows == pytest.approx(
        (3 * (8 * 64 + 3 * 160 + 2 * 6 * 16) * 4 + 256 * (4 + 4)) / 1e9
    )
    assert found.launch == pytest.approx((40 + 3 * (24 + 5)) * 2e-6)


def test_enough_different_steps_give_the_factors_back() -> None:
    cost = cost_on(MINE)
    shapes = [decode_shape(b, c) for b, c in product((1, 4, 16, 64), (10, 400))]
    shapes += [prefill_shape(n, requests=r) for n, r in product((16, 64, 400), (1, 8))]
    seen = [
        Observation(i, seconds(cost, shape), class_seconds(cost, shape).columns)
        for i, shape in enumerate(shapes)
    ]
    assert fit_factors(seen * 2000) == pytest.approx(
        TRUTH, rel=0.01
    )  # many outweigh what is expected
    assert fit_error(seen) < 0.05
    assert predicted(TRUTH, seen[0]) == pytest.approx(seen[0].seconds)


def test_what_the_steps_do_not_tell_stays_as_expected_and_nothing_is_negative() -> None:
    """Two steps of launches alone, at three times their estimate, where twice is expected.

    2 · (ln f − ln 3)² + 0.2 · (ln f − ln 2)² is least at ln f = (2 ln 3 + 0.2 ln 2) / 2.2.
    """
    alone = [Observation(i, 3e-3, (0.0, 0.0, 0.0, 1e-3)) for i in range(2)]
    assert fit_factors(alone) == pytest.approx((1.0, 2.0, 1.0, 3 ** (10 / 11) * 2 ** (1 / 11)))
    # Faster with more of the second class: no factor below zero explains that away.
    odd = [Observation(0, 1.0, (1.0, 0.0, 0.0, 0.0)), Observation(1, 0.5, (1.0, 1.0, 0.0, 0.0))]
    assert min(fit_factors(odd)) > 0.0
    with pytest.raises(ValueError, match="two measured steps"):
        fit_factors(alone[:1])


def test_steps_that_wander_by_a_tenth_leave_factors_near_what_is_expected() -> None:
    """Six steps of three runs, each off by a tenth: what least squares alone made 0 and 13 of."""
    cost, device = cost_on(MINE), (1.1, 1.8, 1.2, 2.5)
    shapes = [prefill_shape(400), decode_shape(1, 400), prefill_shape(64), decode_shape(16, 64)]
    shapes += [prefill_shape(128), decode_shape(8, 128)]
    for signs in product((0.9, 1.1), repeat=6):
        seen = [
            Observation(i, off * seconds(cost, shape, device), class_seconds(cost, shape).columns)
            for i, (shape, off) in enumerate(zip(shapes, signs, strict=True))
        ]
        for found, true in zip(fit_factors(seen), device, strict=True):
            assert 1 / 1.5 < found / true < 1.5


def test_the_error_is_of_runs_left_out() -> None:
    """Two runs as estimated, and one that took twice as long.

    Left out, the third is given 1 of 2 ms. Fitted with it and one more, a factor f costs
    (ln f)² + (ln f − ln 2)² + 0.2 · (ln f)²: least at f = 2^(1 / 2.2), which the other misses by.
    """
    seen = [Observation(i, 1e-3 * (1 + (i == 2)), (1e-3, 0.0, 0.0, 0.0)) for i in range(3)]
    assert fit_error(seen) == pytest.approx((0.5 + 2 * (2 ** (1 / 2.2) - 1)) / 3)


def test_a_device_learns_from_runs_and_a_plan_expects_what_it_learnt() -> None:
    fitted = learn(MINE, [run_of(32), run_of(128), run_of(400)], at="2026-01-02")
    assert (fitted.captures, fitted.steps, fitted.engine) == (3, 6, "builtin")
    assert fitted.error < 0.12  # of two runs for four factors, a pull remains
    device = replace(MINE, calibration=fitted)
    found = plan(PlanOptions(TINY, device, dtype="fp32", input_tokens=64, output_tokens=2))
    assert found.calibration == fitted
    assert found.tpot_s is not None
    wanted = seconds(cost_on(MINE), decode_shape(1, 65))
    assert found.tpot_s.expected == pytest.approx(wanted, rel=0.10)
    assert found.tpot_s.expected_error == 0.15  # other hours differ by more than the fit's miss
    assert any(
        "Calibrated on 2026-01-02 by 6 usual steps of 3 runs" in note for note in found.notes
    )
    plain = plan(PlanOptions(TINY, MINE, dtype="fp32"))
    assert plain.calibration is None
    assert any("Not calibrated" in note for note in plain.notes)


def test_a_large_miss_is_the_error_of_what_is_expected() -> None:
    fitted = Calibration("2026-01-02", "builtin", 3, 6, error=0.4)
    device = replace(MINE, calibration=fitted)
    tpot = plan(PlanOptions(TINY, device, dtype="fp32", input_tokens=64, output_tokens=2)).tpot_s
    assert tpot is not None
    assert tpot.expected_error == 0.4


def test_a_miss_that_nothing_tested_is_not_told_and_promises_no_more_than_none() -> None:
    """Two runs for four factors, two sizes of batch for two terms: a fit follows them anyway."""
    tested = Calibration("", "builtin", 3, 6, error=0.0)
    two_runs = replace(tested, captures=2)
    two_sizes = replace(tested, captures=9, steps=9, step_s=1e-3, request_s=0.0, sizes=2)
    three_sizes = replace(two_sizes, captures=1, steps=3, sizes=3)
    for fitted, is_told in (
        (tested, True),
        (two_runs, False),
        (two_sizes, False),
        (three_sizes, True),
    ):
        device = replace(MINE, calibration=fitted)
        found = plan(PlanOptions(TINY, device, dtype="fp32", input_tokens=64, output_tokens=2))
        (note,) = [note for note in found.notes if "Calibrated" in note]
        assert ("mean miss under 1 % on " in note) == is_told
        assert ("too few to tell how far it misses" in note) != is_told
        assert found.tpot_s is not None
        assert found.tpot_s.expected_error == (0.15 if is_told else 0.70)  # as of the floor alone
        assert found.tpot_s.expected_error_from == ("left out" if is_told else "untested")
        report = json.loads(render_json(found, version=""))
        assert report["calibration"]["tested"] == is_told
        assert report["tpot_s"]["expected_error_from"] == found.tpot_s.expected_error_from


def test_a_miss_of_everything_leaves_a_worst_that_is_a_number() -> None:
    fitted = Calibration("2026-01-02", "builtin", 3, 6, error=1.5)
    device = replace(MINE, calibration=fitted)
    tpot = plan(PlanOptions(TINY, device, dtype="fp32", input_tokens=64, output_tokens=2)).tpot_s
    assert tpot is not None
    assert tpot.expected_error == 1.5
    assert 0 < tpot.value < tpot.worst < math.inf
    assert 0 < tpot.error < 1


def test_a_run_given_twice_is_refused_and_known_by_its_steps() -> None:
    """Three times the same run would miss itself by nothing."""
    run, other = run_of(32), run_of(128)
    with pytest.raises(ValueError, match="the same run"):
        learn(MINE, [run, other, replace(run, meta={"copy": True})], at="")
    assert learn(MINE, [run, other], at="").runs == (run_mark(run), run_mark(other))
    assert run_mark(run) != run_mark(other)


def test_nothing_is_expected_to_be_faster_than_at_best() -> None:
    """Runs that took a third of the probed products' time: the floor is no floor.

    A product of 64 by 64 reads 16 KiB at 1 GB/s, 16 µs; the probe found 100 µs.
    """
    slow = tuple(replace(p, time_s=100 * p.time_s) for p in MINE.products)
    faster = Calibration("", "builtin", 3, 6, 0.1, 1 / 3, 1.0, 1.0, 0.0)
    for fitted, is_faster in ((faster, True), (replace(faster, products=2.0), False)):
        options = PlanOptions(
            TINY,
            replace(MINE, products=slow, calibration=fitted),
            dtype="fp32",
            input_tokens=64,
            output_tokens=9,
        )
        found = plan(options)
        tpot, rate, ttft = found.tpot_s, found.throughput_tokens_per_s, found.ttft_s
        assert tpot is not None
        assert rate is not None
        assert ttft is not None
        assert None not in (tpot.expected, rate.expected, ttft.expected)
        assert tpot.value <= (tpot.expected or 0) <= tpot.worst
        assert ttft.value <= (ttft.expected or 0) <= ttft.worst
        assert rate.value >= (rate.expected or 0) >= rate.worst
        assert (tpot.value == tpot.expected) == is_faster
        assert any("faster than the floor" in note for note in found.notes) == is_faster


def test_a_step_is_the_sum_of_its_classes_and_explained_no_more_than_before() -> None:
    fitted = Calibration("", "", 1, 2, 0.1, *TRUTH)
    cost = cost_on(replace(MINE, calibration=fitted))
    model = calibrated_model(cost)
    assert isinstance(model, CalibratedModel)
    for shape in (decode_shape(4, 100), prefill_shape(64)):
        time, plain = model.step_time(shape), cost.step_time(shape)
        assert time.floor == pytest.approx(seconds(cost, shape))
        assert (time.weights, time.kv, time.compute) == (plain.weights, plain.kv, plain.compute)


def test_a_table_device_learns_what_the_host_adds() -> None:
    """Steps of one and of eight requests: 2 ms each and 100 µs a request beyond the device."""
    h100 = load_device("h100-sxm")
    subject = Subject(TINY, h100, 1, "fp16", "fp16", engine="vllm")
    kernels = 3 * (4 * 4e-6 + 14e-6 + 5 * 3e-6) + 4e-6  # of the device: starts, in the main
    rows = [
        decode(0, 1e3 * (kernels + 2e-3 + n * 1e-4), 10 * n, decode_requests=n, logit_rows=n)
        for n in (1, 8)
    ]
    fitted = learn(h100, [Capture(subject, steps=tuple(rows))], at="")
    assert fitted.step_s == pytest.approx(2e-3, rel=0.01)
    assert fitted.request_s == pytest.approx(1e-4, rel=0.01)
    tpot = plan(PlanOptions(TINY, replace(h100, calibration=fitted), dtype="fp16")).tpot_s
    assert tpot is not None
    assert tpot.expected == pytest.approx(kernels + 2.1e-3, rel=0.01)


@pytest.mark.parametrize(
    ("device", "capture", "complaint"),
    [
        (replace(MINE, products=()), run_of(32), "probe it with --probe"),
        (MINE, Capture(Subject(TINY, MINE, 1, "fp32", "fp32")), "holds no step"),
        (MINE, Capture(Subject(None, MINE, 1, "fp32", "fp32")), "the model is not known"),
        (
            replace(MINE, peak_flops={"fp32": 1e10, "bf16": 1e10}),
            Capture(Subject(TINY, MINE, 1, "bf16", "bf16")),
            "no products in bf16",
        ),
        (load_device("h100-sxm"), run_of(32), "two batch sizes"),
    ],
)
def test_what_cannot_calibrate_says_what_it_lacks(
    device: DeviceSpec, capture: Capture, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        learn(device, [capture], at="")


def test_a_run_is_set_beside_its_devices_calibration() -> None:
    """Steps as long as the truth says, on a device whose calibration is the truth."""
    fitted = Calibration("2026-01-02", "builtin", 3, 6, 0.1, *TRUTH)
    run, device = run_of(128), replace(MINE, calibration=fitted)
    calibrated = replace(run, subject=replace(run.subject, device=device))
    (note,) = [n for n in diagnose(calibrated).notes if "calibration" in n]
    usual = f"{1e3 * seconds(cost_on(MINE), decode_shape(1, 129)):.3g} ms"
    assert f"takes {usual}; it took {usual}" in note
    assert (
        "2026-01-02 (6 usual steps of 3 runs, one of each phase, mean miss 10 % on runs left out "
        "of it)" in note
    )
    assert not [n for n in diagnose(run).notes if "calibration" in n]
