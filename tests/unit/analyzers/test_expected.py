"""What to expect of a GPU: by hand, never below the floor, and never the worse for more of it."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from step_rows import TINY

from stallscope.analyzers.cost.achievable import DEFAULT, Achievable
from stallscope.analyzers.cost.expected import ExpectedModel, expected_model
from stallscope.analyzers.cost.operators import (
    StepShape,
    decode_shape,
    prefill_shape,
    step_operators,
)
from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import ModelSpec

SLOW = Machine(peak_flops=1e9, bytes_per_s=1e6, kind="datasheet")
LLAMA = load_model("llama-3-8b")
A100 = Machine(peak_flops=312e12, bytes_per_s=1555e9, kind="datasheet", link_bytes_per_s=300e9)


def expected(
    machine: Machine, reach: Achievable = DEFAULT, spec: ModelSpec = TINY
) -> ExpectedModel:
    model = expected_model(CostModel(spec, "fp16", "fp16", machine), reach)
    assert model is not None
    return model


def test_a_step_by_hand() -> None:
    """One request at ten tokens, every fraction one, no overlap to speak of: compute is nothing."""
    bare = Achievable(1.0, 1.0, 1e-3, 1.0, 1.0, 2e-3, 5, 1e-4)
    free = dataclasses.replace(SLOW, peak_flops=math.inf)
    time = expected(free, bare).step_time(decode_shape(1, 10))
    # q, k, v, o: 64 x (64 + 32 + 32 + 64); gate, up, down: 3 x 64 x 160; three layers; the head.
    weights = 2 * (3 * (64 * 192 + 3 * 64 * 160) + 64 * 256)
    # Rows in and out of each product: (64+64) + 2 (64+32) + (64+64) + 2 (64+160) + (160+64), head.
    rows = 2 * (3 * (128 + 192 + 128 + 448 + 224) + 320)
    assert time.weights == pytest.approx((weights + rows) / 1e6)
    # K and V of ten tokens, two heads of 16; queries and outputs.
    assert time.kv == pytest.approx(3 * (2 * 2 * 2 * 16 * 10 + 2 * 2 * 64) / 1e6)
    # Kernels: qkv, o, gate and up, down in three layers, and the head: 13; attention: 3.
    small = 2 * 3 * (8 * 64 + 3 * 160 + 2 * 6 * 16) / 1e6
    assert time.excess == pytest.approx(13e-3 + 6e-3 + 3 * 5e-4 + small)
    assert time.communication == 0.0


def test_memory_and_arithmetic_overlap_in_part() -> None:
    both = expected(dataclasses.replace(A100, link_bytes_per_s=None), spec=LLAMA)
    only_memory = expected(dataclasses.replace(A100, peak_flops=math.inf), spec=LLAMA)
    only_compute = expected(dataclasses.replace(A100, bytes_per_s=math.inf), spec=LLAMA)
    shape = decode_shape(128, 512)

    def busy(model: ExpectedModel) -> float:
        time = model.step_time(shape)
        return time.weights + time.kv + time.compute

    assert max(busy(only_memory), busy(only_compute)) < busy(both)
    assert busy(both) < busy(only_memory) + busy(only_compute)


def test_what_was_measured_itself_needs_no_expectation() -> None:
    measured = dataclasses.replace(A100, kind="achievable")
    assert expected_model(CostModel(TINY, "fp32", "fp32", measured)) is None
    probed = dataclasses.replace(A100, linear_times={"qkv": ((1, 1e-3),)})
    assert expected_model(CostModel(TINY, "fp32", "fp32", probed)) is None


def test_an_all_reduce_costs_a_start_and_its_bytes() -> None:
    two = expected(dataclasses.replace(A100, ranks=2), spec=LLAMA)
    payload = 4 * 4096 * 2  # four rows of 4096 in 16 bit
    each = 20e-6 + 2 * (1 / 2) * payload / (0.75 * 300e9)
    time = two.step_time(decode_shape(4, 100))
    assert time.communication == pytest.approx(2 * 32 * each)
    assert expected(A100, spec=LLAMA).step_time(decode_shape(4, 100)).communication == 0.0


shapes = st.one_of(
    st.builds(decode_shape, st.integers(1, 256), st.integers(1, 4096)),
    st.builds(prefill_shape, st.integers(1, 4096)),
)
models = st.sampled_from([CostModel, ExpectedModel])


@settings(max_examples=60, deadline=None)
@given(shape=shapes, model=models, more=st.floats(1.0, 10.0))
def test_more_bandwidth_and_more_arithmetic_never_take_longer(
    shape: StepShape, model: type[CostModel], more: float
) -> None:
    before = model(LLAMA, "fp16", "fp16", A100).step_time(shape).floor
    for change in (
        {"bytes_per_s": more * A100.bytes_per_s},
        {"peak_flops": more * A100.peak_flops},
    ):
        after = model(LLAMA, "fp16", "fp16", dataclasses.replace(A100, **change))
        assert after.step_time(shape).floor <= before * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(batch=st.integers(1, 255), more=st.integers(1, 256), context=st.integers(1, 4096))
def test_more_batch_never_lowers_throughput(batch: int, more: int, context: int) -> None:
    for model in (CostModel, ExpectedModel):
        cost = model(LLAMA, "fp16", "fp16", A100)
        few = batch / cost.step_time(decode_shape(batch, context)).floor
        many = (batch + more) / cost.step_time(decode_shape(batch + more, context)).floor
        assert many >= few * (1 - 1e-12)


@settings(max_examples=60, deadline=None)
@given(shape=shapes)
def test_what_is_expected_is_never_below_the_floor(shape: StepShape) -> None:
    cost = CostModel(LLAMA, "fp16", "fp16", A100)
    model = expected(A100, spec=LLAMA)
    assert model.step_time(shape).floor >= cost.step_time(shape).floor


@settings(max_examples=30, deadline=None)
@given(shape=shapes)
def test_one_rank_is_no_tensor_parallelism(shape: StepShape) -> None:
    for model in (CostModel, ExpectedModel):
        one = model(LLAMA, "fp16", "fp16", dataclasses.replace(A100, ranks=1))
        none = model(LLAMA, "fp16", "fp16", dataclasses.replace(A100, link_bytes_per_s=None))
        assert one.step_time(shape) == none.step_time(shape)


@settings(max_examples=30, deadline=None)
@given(tokens=st.integers(1, 2048), cached=st.integers(0, 2048))
def test_flops_and_bytes_add_over_chunks_of_a_prompt(tokens: int, cached: int) -> None:
    """A prompt in two steps does the FLOPs of one, and reads the weights twice."""

    def work(shape: StepShape) -> tuple[float, float]:
        found = step_operators(LLAMA, shape, dtype="fp16", kv_dtype="fp16")
        blocks = [o for o in found if o.name != "lm_head"]
        flops = math.fsum(o.instances * o.flops for o in blocks)
        return flops, math.fsum(o.instances * o.weight_bytes for o in blocks)

    first, second = work(prefill_shape(tokens)), work(prefill_shape(cached + 1, cached=tokens))
    whole = work(prefill_shape(tokens + cached + 1))
    assert first[0] + second[0] == pytest.approx(whole[0])
    assert first[1] == second[1] == whole[1]
