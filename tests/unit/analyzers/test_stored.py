"""The cost model by the engine's own figures: what of them a step's bytes follow, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from step_rows import decode

from stallscope.analyzers.cost.arithmetic import step_weight_bytes, weight_bytes
from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.operators import decode_shape
from stallscope.analyzers.cost.roofline import CostModel, kv_bytes_on_rank
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.stated.pool import pool_tokens
from stallscope.analyzers.whatif.fewer_bytes import fewer_kv_bytes, fewer_weight_bytes
from stallscope.profiler.capture import Capture
from stallscope.profiler.devices import load_device
from stallscope.profiler.model_parts import Experts, Stored
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import ModelSpec, Subject

LLAMA = load_model("llama-3-8b")
A100 = load_device("a100-sxm4-80gb")
TOTAL = 2 * 8_030_261_248  # bytes in bf16
TABLES = 2 * 2 * 128_256 * 4096  # of them embedding and LM head
NORMS = 2 * 65 * 4096
LINEARS = TOTAL - TABLES - NORMS
KV = 131_072.0  # bytes a token


def cost_of(spec: ModelSpec = LLAMA, ranks: int = 1, **said: float) -> CostModel:
    subject = Subject(spec, A100, ranks, "bf16", "bf16")
    cost = build_cost_model(Capture(subject, meta={"server_log": said}))
    assert isinstance(cost, CostModel)
    return cost


def test_a_cache_of_half_the_bytes_is_read_in_half_the_time_and_has_room_for_twice() -> None:
    plain, half = cost_of(), cost_of(kv_bytes=KV / 2 * 1e6, kv_tokens=1e6)
    shape = decode_shape(64, 8192)
    before, after = plain.step_time(shape), half.step_time(shape)
    moved = 64 * 8192 * KV  # of 2.039 TB/s; queries and outputs besides stay
    assert before.kv - after.kv == pytest.approx(moved / 2 / A100.memory_bytes_per_s)
    assert (after.weights, after.compute) == (before.weights, before.compute)
    assert (kv_bytes_on_rank(plain), kv_bytes_on_rank(half)) == (KV, KV / 2)


def test_fewer_weights_loaded_are_fewer_weights_read() -> None:
    """A tenth of all less: the tables and norms stay in 16 bit, the linears lose all of it."""
    cost = cost_of(weights_bytes=0.9 * TOTAL)
    head = TABLES / 2
    read = LINEARS - 0.1 * TOTAL + head
    assert step_weight_bytes(cost.spec, "bf16") == pytest.approx(read)
    assert weight_bytes(cost.spec, "bf16") == pytest.approx(0.9 * TOTAL)
    found = {m.name: m for m in diagnose(_run(weights_bytes=0.9 * TOTAL)).measures}
    assert found["weight_bytes_per_step"].value == pytest.approx(read)
    assert "what the engine says was loaded" in found["weight_bytes_per_step"].source
    assert found["weights_of_memory"].value == pytest.approx(0.9 * TOTAL / (A100.memory_bytes or 0))


def test_each_rank_s_share_is_what_is_compared() -> None:
    """On two ranks embedding, head and linears are halved, norms are not."""
    held = (TOTAL - NORMS) / 2 + NORMS
    cost = cost_of(ranks=2, weights_bytes=0.9 * held)
    assert weight_bytes(cost.spec, "bf16", tensor_parallel=2) == pytest.approx(0.9 * held)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (LLAMA, {"weights_bytes": TOTAL / 0.96}),  # within rounding
        (LLAMA, {"weights_bytes": 1.5 * TOTAL}),  # a vision tower, a draft model
        (LLAMA, {"weights_bytes": 0.05 * TOTAL}),  # less than the tables alone: of something else
        (LLAMA, {"kv_bytes": 1.04 * KV * 1e6, "kv_tokens": 1e6}),
        (LLAMA, {"kv_bytes": KV / 17 * 1e6, "kv_tokens": 1e6}),
        (LLAMA, {"kv_bytes": KV / 2 * 1e6, "kv_tokens": 1e6, "kv_blocks_override": 4.0}),
        (LLAMA, {"kv_bytes": KV / 2 * 1e6, "kv_tokens": 1e6, "pipeline_parallel": 2}),
        (
            replace(LLAMA, mixture=Experts(8, 2, 14_336, 32)),
            {"weights_bytes": 0.5 * TOTAL},
        ),
    ],
)
def test_what_is_no_better_than_the_count_leaves_it(
    spec: ModelSpec, said: dict[str, float]
) -> None:
    assert cost_of(spec, **said).spec.stored == Stored()


def test_the_pool_holds_the_tokens_that_the_engine_states() -> None:
    subject = Subject(LLAMA, A100, 1, "bf16", "bf16", kv_budget_bytes=1 << 30)
    stated = Capture(subject, meta={"metrics_page": {"kv_tokens": 5000}})
    assert pool_tokens(stated, int(KV)) == 5000
    assert pool_tokens(Capture(subject), int(KV)) == 2**30 / KV == 8192
    assert pool_tokens(Capture(replace(subject, kv_budget_bytes=None)), int(KV)) is None


def _run(**said: float) -> Capture:
    subject = Subject(LLAMA, A100, 1, "bf16", "bf16")
    steps = tuple(decode(20 * i, 20 * i + 20, 500 + i) for i in range(4))
    return Capture(subject, steps=steps, meta={"server_log": said})


def test_no_gain_is_told_of_a_dtype_that_is_not_the_one_given() -> None:
    other = cost_of(weights_bytes=0.7 * TOTAL, kv_bytes=KV / 2 * 1e6, kv_tokens=1e6)
    assert fewer_weight_bytes((), other, "int4", 10.0) is None
    assert fewer_kv_bytes((), other, "fp8", 10.0) is None
