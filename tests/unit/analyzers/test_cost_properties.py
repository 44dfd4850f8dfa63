"""What holds of every prediction, whatever the model, the machine and the step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_families import FAMILIES

from stallscope.analyzers.cost.arithmetic import step_weight_bytes, weight_bytes
from stallscope.analyzers.cost.calibrated import CalibratedModel
from stallscope.analyzers.cost.expected import expected_model
from stallscope.analyzers.cost.kv_bytes import kv_bytes, kv_bytes_per_token, state_bytes
from stallscope.analyzers.cost.operators import (
    StepShape,
    decode_shape,
    prefill_shape,
    step_operators,
)
from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.analyzers.plan.options import PlanOptions
from stallscope.analyzers.plan.planner import plan
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import Calibration, ModelSpec

MODELS = tuple(load_model(n) for n in ("tiny-26m", "llama-3-8b", "mistral-7b-v0.1", "qwen3-0.6b"))
models = st.sampled_from(MODELS)
every_model = st.sampled_from((*MODELS, *FAMILIES.values()))
dtypes = st.sampled_from(("fp32", "bf16", "fp8", "int4"))
shapes = st.one_of(
    st.builds(decode_shape, st.integers(1, 512), st.integers(1, 8192)),
    st.builds(
        lambda n, r, c: prefill_shape(n, requests=r, cached=c),
        st.integers(1, 4096),
        st.integers(1, 8),
        st.integers(0, 4096),
    ),
)
LINK = 1e11
FITTED = Calibration("", "", 1, 2, 0.1, 1.2, 2.0, 1.5, 3.0)


def priced(spec: ModelSpec, dtype: str, **machine: object) -> tuple[CostModel, ...]:
    """The floor, the expectation on a datasheet, and a calibrated machine."""
    where = replace(Machine(1e14, 1e12, "datasheet", link_bytes_per_s=LINK), **machine)  # type: ignore[arg-type]
    floor = CostModel(spec, dtype, "fp16", where)
    likely = expected_model(floor)
    assert likely is not None
    measured = replace(where, kind="achievable", launch_s=1e-6)
    return floor, likely, CalibratedModel(spec, dtype, "fp16", measured, fitted=FITTED)


@given(every_model, dtypes, shapes, st.floats(1.0, 100.0))
@settings(max_examples=60, deadline=None)
def test_more_bandwidth_arithmetic_or_link_never_takes_longer(
    spec: ModelSpec, dtype: str, shape: StepShape, times: float
) -> None:
    for name, value in (("bytes_per_s", 1e12), ("peak_flops", 1e14), ("link_bytes_per_s", LINK)):
        for before, after in zip(
            priced(spec, dtype, ranks=2),
            priced(spec, dtype, ranks=2, **{name: value * times}),
            strict=True,
        ):
            slow, fast = before.step_time(shape).floor, after.step_time(shape).floor
            assert fast <= slow * (1 + 1e-12)


@given(models, dtypes, shapes)
@settings(max_examples=60, deadline=None)
def test_bytes_and_flops_of_a_step_add_over_its_operators(
    spec: ModelSpec, dtype: str, shape: StepShape
) -> None:
    """A second route: 2 FLOPs a weight and row, the head's rows apart, and attention's pairs."""
    operators = step_operators(spec, shape, dtype=dtype, kv_dtype="fp16")
    linears = [o for o in operators if o.group != "attention"]
    assert sum(o.instances * o.weight_bytes for o in linears) == pytest.approx(
        step_weight_bytes(spec, dtype)
    )
    queries, keys = spec.num_heads * spec.head_dim, spec.num_kv_heads * spec.head_dim
    layer = spec.hidden_size * (2 * queries + 2 * keys + 3 * spec.intermediate_size)
    head = spec.hidden_size * spec.vocab_size
    assert sum(o.instances * o.flops for o in linears) == pytest.approx(
        2.0 * (shape.tokens * spec.num_layers * layer + shape.logit_rows * head)
    )
    rest = [o for o in operators if o.group == "attention"]
    assert sum(o.instances * o.flops for o in rest) == pytest.approx(
        4.0 * spec.num_layers * queries * shape.attention_pairs
    )
    assert sum(o.instances * o.kv_bytes for o in rest) == pytest.approx(
        kv_bytes_per_token(spec, "fp16") * shape.kv_read_tokens
    )
    cost = priced(spec, dtype)[0]
    assert cost.step_time(shape).floor == pytest.approx(
        sum(t.time_s for t in cost.operator_times(shape))
    )


@given(every_model, dtypes, shapes)
@settings(max_examples=60, deadline=None)
def test_of_every_family_a_step_s_parts_are_its_operators(
    spec: ModelSpec, dtype: str, shape: StepShape
) -> None:
    """Two FLOPs a weight and row that passes it; what a step reads of the weights; the floor."""
    operators = step_operators(spec, shape, dtype=dtype, kv_dtype="fp16")
    linears = [o for o in operators if o.group != "attention"]
    passed = step_weight_bytes(spec, "bf16") / 2.0  # of one row: experts as many as it passes
    head = spec.hidden_size * spec.vocab_size
    assert sum(o.instances * o.flops for o in linears) == pytest.approx(
        2.0 * (shape.tokens * (passed - head) + shape.logit_rows * head)
    )
    assert sum(o.instances * o.weight_bytes for o in linears) == pytest.approx(
        step_weight_bytes(spec, dtype, rows=shape.tokens)
    )
    cost = priced(spec, dtype)[0]
    assert cost.step_time(shape).floor == pytest.approx(
        sum(t.time_s for t in cost.operator_times(shape))
    )


@given(every_model, st.integers(1, 100_000), st.integers(1, 100_000))
@settings(max_examples=60, deadline=None)
def test_a_sequence_holds_more_the_longer_it_is_and_only_attention_s_cache_grows(
    spec: ModelSpec, one: int, other: int
) -> None:
    short, long = (kv_bytes(spec, n, "fp16") for n in sorted((one, other)))
    assert short <= long
    state = state_bytes(spec, "fp16")
    most = kv_bytes_per_token(spec, "fp16") * max(one, other)
    assert state <= short
    assert long - state <= most


@given(every_model, st.sampled_from(("bf16", "fp8", "int4")))
@settings(max_examples=60, deadline=None)
def test_all_ranks_together_hold_at_least_what_one_does(spec: ModelSpec, dtype: str) -> None:
    whole = weight_bytes(spec, dtype)
    for ranks in (2, 4):
        assert whole <= ranks * weight_bytes(spec, dtype, tensor_parallel=ranks) * (1 + 1e-12)
        assert weight_bytes(spec, dtype, tensor_parallel=ranks) <= whole


@given(every_model, dtypes, shapes)
@settings(max_examples=60, deadline=None)
def test_one_rank_is_no_tensor_parallel_at_all(
    spec: ModelSpec, dtype: str, shape: StepShape
) -> None:
    for alone, one in zip(
        priced(spec, dtype), priced(spec, dtype, ranks=1, link_bytes_per_s=None), strict=True
    ):
        assert one.step_time(shape) == alone.step_time(shape)
    assert weight_bytes(spec, dtype, tensor_parallel=1) == weight_bytes(spec, dtype)
    assert kv_bytes(spec, 777, "fp16", tensor_parallel=1) == kv_bytes(spec, 777, "fp16")


@given(every_model, dtypes, st.integers(1, 511), st.integers(1, 4096))
@settings(max_examples=60, deadline=None)
def test_a_larger_batch_never_makes_fewer_tokens_a_second(
    spec: ModelSpec, dtype: str, batch: int, context: int
) -> None:
    for cost in priced(spec, dtype):
        small, large = (
            n / cost.step_time(decode_shape(n, context)).floor for n in (batch, batch + 1)
        )
        assert large >= small * (1 - 1e-9)


@pytest.mark.parametrize("name", ["llama-3-8b", "mistral-7b-v0.1"])
def test_more_clients_never_lower_a_plans_throughput_while_their_cache_fits(name: str) -> None:
    options = PlanOptions(
        load_model(name), load_device("h100-sxm"), dtype="bf16", input_tokens=256, output_tokens=32
    )
    rates = []
    for clients in (1, 2, 4, 8, 16, 32):
        found = plan(replace(options, concurrency=clients))
        assert found.memory.max_concurrency is not None
        assert clients <= found.memory.max_concurrency
        assert found.throughput_tokens_per_s is not None
        rates.append((found.throughput_tokens_per_s.value, found.throughput_tokens_per_s.expected))
    assert rates == sorted(rates)
    assert [likely for _, likely in rates] == sorted(likely or 0.0 for _, likely in rates)
