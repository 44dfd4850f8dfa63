"""Each operator's time, the part it counts under, and the term that it hides."""

from __future__ import annotations

import dataclasses
import random

import pytest
from step_rows import TINY

from stallscope.analyzers.cost.operators import Operator, StepShape, decode_shape, prefill_shape
from stallscope.analyzers.cost.roofline import CostModel, Machine, interpolate, operator_time
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model


def linear(flops: float, weight_bytes: float) -> Operator:
    return Operator("q_proj", "qkv", 4, 8, flops, weight_bytes, 0.0, 0.0)


SLOW = Machine(peak_flops=1000.0, bytes_per_s=100.0, kind="datasheet")


def test_the_binding_term_counts_and_the_other_is_hidden() -> None:
    # Four instances: 4 x 500 / 1000 = 2 s of arithmetic, 4 x 75 / 100 = 3 s of reading.
    reading = operator_time(linear(500.0, 75.0), SLOW, 1.0)
    assert (reading.part, reading.time_s, reading.hidden_s) == ("weights", 3.0, 2.0)
    # 4 x 1000 / 1000 = 4 s of arithmetic over the same reading.
    computing = operator_time(linear(1000.0, 75.0), SLOW, 1.0)
    assert (computing.part, computing.time_s, computing.hidden_s) == ("compute", 4.0, 3.0)


def test_attention_that_reads_counts_as_kv() -> None:
    attention = Operator("attention", "attention", 2, 1, 10.0, 0.0, 90.0, 10.0)
    timed = operator_time(attention, SLOW, 1.0)
    assert (timed.part, timed.time_s) == ("kv", 2.0)  # 2 x (90 + 10) / 100


def test_the_ridge_of_the_document_divides_memory_from_compute() -> None:
    device = load_device("a100-sxm4-40gb")
    assert device.peak_flops["fp16"] / device.memory_bytes_per_s == pytest.approx(200.6, abs=0.05)
    machine = Machine(device.peak_flops["fp16"], device.memory_bytes_per_s, "datasheet")
    model = CostModel(load_model("llama-7b"), "fp16", "fp16", machine)
    # A q projection of r rows has 4096 r / (4096 + 2 r) FLOP/B: 200.1 at 222 rows, 201.0 at 223.
    parts = [
        next(
            t.part for t in model.operator_times(decode_shape(r, 1)) if t.operator.name == "q_proj"
        )
        for r in (1, 222, 223, 512)
    ]
    assert parts == ["weights", "weights", "compute", "compute"]


def test_interpolation() -> None:
    points = ((2, 1.0), (4, 2.0), (8, 10.0))
    assert interpolate(points, 1) == 1.0  # below: the matrix is read whole all the same
    assert interpolate(points, 2) == 1.0
    assert interpolate(points, 3) == 1.5
    assert interpolate(points, 4) == 2.0
    assert interpolate(points, 7) == 8.0  # three quarters of the way from 2 to 10
    assert interpolate(points, 8) == 10.0
    assert interpolate(points, 12) == 15.0  # above: in proportion to the rows
    assert interpolate(((3, 5.0),), 6) == 10.0


def tiny_model(**fields: object) -> CostModel:
    machine = Machine(peak_flops=1e9, bytes_per_s=1e8, kind="achievable")
    return CostModel(TINY, "fp32", "fp32", dataclasses.replace(machine, **fields))  # type: ignore[arg-type]


def test_a_measured_group_is_shared_out_by_bytes_and_keeps_its_part() -> None:
    model = tiny_model(linear_times={"qkv": ((1, 0.004), (3, 0.008)), "lm_head": ((1, 0.5),)})
    times = {t.operator.name: t for t in model.operator_times(decode_shape(2, 10))}
    # Two rows take 6 ms a layer; q, k and v hold 64, 32 and 32 of 128 columns; three layers.
    assert times["q_proj"].time_s == pytest.approx(3 * 0.006 / 2)
    assert times["k_proj"].time_s == pytest.approx(3 * 0.006 / 4)
    assert times["v_proj"].time_s == pytest.approx(3 * 0.006 / 4)
    assert times["lm_head"].time_s == pytest.approx(2 * 0.5)
    assert {n for n, t in times.items() if t.is_measured} == {
        "q_proj",
        "k_proj",
        "v_proj",
        "lm_head",
    }
    # r rows of q: 8192 r FLOPs over 16,384 + 512 r bytes, 0.9 FLOP/B at 2 rows and 10.4 at 60,
    # against a ridge of 10.
    assert times["q_proj"].part == "weights"
    many = {t.operator.name: t for t in model.operator_times(decode_shape(60, 10))}
    assert many["q_proj"].part == "compute"
    assert many["q_proj"].time_s == pytest.approx(3 * 0.008 * 20 / 2)


def test_a_step_sums_its_operators_by_part() -> None:
    model = tiny_model()
    for shape in (decode_shape(3, 50), prefill_shape(40), StepShape(16, 0, 90, 700)):
        times = model.operator_times(shape)
        sums = {
            part: sum(t.time_s for t in times if t.part == part)
            for part in ("weights", "kv", "compute")
        }
        step = model.step_time(shape)
        assert (step.weights, step.kv, step.compute) == pytest.approx(tuple(sums.values()))
        assert step.floor == pytest.approx(sum(t.time_s for t in times))


def test_tiny_decode_step_by_hand() -> None:
    # One row in fp32, 4 bytes each: weights 3 x (2 x 64 x 64 + 2 x 64 x 32 + 3 x 64 x 160) and the
    # head 64 x 256; activations by linear (inputs + outputs).
    weights = 4 * (3 * (8192 + 4096 + 30_720) + 16_384)
    activations = 4 * (3 * (2 * 128 + 2 * 96 + 3 * 224) + 320)
    kv = 4 * 3 * (2 * 32 * 20 + 2 * 64)  # K and V over 20 keys; q in, result out
    step = tiny_model().step_time(decode_shape(1, 20))
    assert step.weights == pytest.approx((weights + activations) / 1e8)
    assert step.kv == pytest.approx(kv / 1e8)
    assert (step.compute, step.communication) == (0.0, 0.0)


def test_ranks_share_the_work() -> None:
    alone, shared = tiny_model(), tiny_model(ranks=2)
    for shape in (decode_shape(1, 30), prefill_shape(64)):
        assert shared.step_time(shape).floor == pytest.approx(alone.step_time(shape).floor / 2)


def test_kv_heads_are_copied_to_ranks_beyond_their_number() -> None:
    # Two KV heads over four ranks: each rank still reads one whole head, half of all KV.
    shape = decode_shape(1, 1000)
    kv, q_and_out = 4 * 3 * 2 * 32 * 1000, 4 * 3 * 2 * 64
    assert tiny_model(ranks=2).step_time(shape).kv == pytest.approx((kv / 2 + q_and_out / 2) / 1e8)
    assert tiny_model(ranks=4).step_time(shape).kv == pytest.approx((kv / 2 + q_and_out / 4) / 1e8)


def test_communication_by_hand() -> None:
    # Two ring all-reduces a layer; in each a rank sends 2 x 3/4 of the payload: 5 rows of 64
    # activations of 4 bytes.
    model = tiny_model(ranks=4, link_bytes_per_s=1e6)
    payload = 5 * 64 * 4
    got = model.step_time(decode_shape(5, 10)).communication
    assert got == pytest.approx(3 * 2 * (2 * 3 / 4) * payload / 1e6)
    assert tiny_model(ranks=4).step_time(decode_shape(5, 10)).communication == 0.0
    assert tiny_model(link_bytes_per_s=1e6).step_time(decode_shape(5, 10)).communication == 0.0


def test_no_machine_is_faster_with_less() -> None:
    rng = random.Random(5)
    for _ in range(200):
        peak, bandwidth = 10 ** rng.uniform(6, 12), 10 ** rng.uniform(6, 12)
        fast = CostModel(TINY, "fp16", "fp16", Machine(peak, bandwidth, "datasheet"))
        slow = CostModel(
            TINY,
            "fp16",
            "fp16",
            Machine(peak * rng.uniform(0.3, 1), bandwidth * rng.uniform(0.3, 1), "datasheet"),
        )
        shape = decode_shape(rng.randint(1, 64), rng.randint(1, 400))
        more = StepShape(
            shape.tokens + 1,
            shape.logit_rows + 1,
            shape.kv_read_tokens + 9,
            shape.attention_pairs + 9,
        )
        assert slow.step_time(shape).floor >= fast.step_time(shape).floor
        assert fast.step_time(more).floor >= fast.step_time(shape).floor
