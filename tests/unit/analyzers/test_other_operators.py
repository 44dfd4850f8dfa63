"""FLOPs and bytes of experts, latent attention, windows of some layers, and linear attention."""

from __future__ import annotations

import pytest
from tiny_families import LATENT, LINEAR, MIXED, NEAR

from stallscope.analyzers.cost.arithmetic import num_parameters, step_weight_bytes
from stallscope.analyzers.cost.operators import (
    Operator,
    StepShape,
    decode_shape,
    prefill_shape,
    step_operators,
)
from stallscope.profiler.spec import ModelSpec


def operators(spec: ModelSpec, shape: StepShape) -> dict[str, Operator]:
    return {o.name: o for o in step_operators(spec, shape, dtype="fp16", kv_dtype="fp16")}


def test_experts_by_hand() -> None:
    found = operators(MIXED, decode_shape(1, 10))
    up = found["expert_up_proj"]
    # One token: two of eight experts are read and multiplied, in two of three layers.
    assert (up.instances, up.flops) == (2, 2 * 2 * 64 * 96)
    assert up.weight_bytes == pytest.approx(2 * 2 * 64 * 96)
    assert (found["gate_proj"].instances, found["shared_up_proj"].flops) == (1, 2 * 64 * 32)
    # Two tokens: 8 (1 - (6/8)²) = 3.5 experts on average.
    assert operators(MIXED, decode_shape(2, 10))["expert_up_proj"].weight_bytes == pytest.approx(
        3.5 * 2 * 64 * 96
    )
    # Many: all of them.
    many = operators(MIXED, prefill_shape(500))["expert_up_proj"]
    assert many.weight_bytes == pytest.approx(8 * 2 * 64 * 96)
    assert many.flops == 500 * up.flops


def test_a_step_reads_fewer_weights_than_there_are() -> None:
    """Of one row: all parameters but norms, the input table and six of eight experts."""
    unread = 7 * 64 + 256 * 64 + 6 * 3 * 2 * 64 * 96
    assert step_weight_bytes(MIXED, "fp16") == pytest.approx(2 * (num_parameters(MIXED) - unread))
    assert step_weight_bytes(MIXED, "fp16", rows=1000) == pytest.approx(
        2 * (num_parameters(MIXED) - unread + 6 * 3 * 2 * 64 * 96)
    )


def test_layers_with_a_window_read_no_more_than_it() -> None:
    found = operators(NEAR, decode_shape(3, 10))
    full, near = found["attention"], found["attention_local"]
    assert (full.instances, near.instances) == (1, 2)
    key = 2 * 2 * 16 * 2  # K and V, two KV heads of 16, fp16
    assert (full.kv_bytes, near.kv_bytes) == (30 * key, 12 * key)
    assert near.flops == 4 * 64 * 12
    short = operators(NEAR, decode_shape(3, 2))
    assert short["attention_local"].kv_bytes == short["attention"].kv_bytes


def test_latent_attention_by_hand() -> None:
    found = operators(LATENT, decode_shape(1, 100))
    # Decode over the latent: 4 heads, 40 products for a score and 32 for the sum, 100 keys.
    assert found["attention"].flops == 2 * 4 * (40 + 32) * 100
    assert found["attention"].kv_bytes == 100 * 40 * 2
    assert found["attention"].bytes_on_rank(4) > 100 * 40 * 2  # whole on each rank
    # A prompt makes keys and values of 24 and 16 anew, and none before it are needed.
    prompt = operators(LATENT, prefill_shape(50))["attention"]
    assert prompt.flops == 2 * 4 * (24 + 16) * (50 * 51 // 2)
    assert [found[n].flops for n in ("q_a_proj", "q_b_proj", "kv_a_proj", "kv_b_proj")] == [
        2 * 64 * 24,
        2 * 24 * 4 * 24,
        2 * 64 * 40,
        2 * 32 * 4 * 32,
    ]


def test_narrow_matrices_are_whole_on_each_rank() -> None:
    found = operators(LATENT, decode_shape(1, 100))
    narrow, wide = found["kv_a_proj"], found["kv_b_proj"]
    assert narrow.bytes_on_rank(4) == narrow.bytes
    assert wide.bytes_on_rank(4) == wide.bytes / 4


def test_linear_attention_does_not_grow_with_the_context() -> None:
    short, long = (operators(LINEAR, decode_shape(2, n)) for n in (10, 1000))
    assert short["delta_state"] == long["delta_state"]
    # 4 heads of 8 x 8 and 3 inputs of 64 channels, 2 bytes, read and written for two requests.
    assert short["delta_state"].kv_bytes == 2 * 2 * 2 * (4 * 64 + 3 * 64)
    assert short["delta_state"].flops == 7 * 256 * 2
    assert (short["attention"].instances, short["delta_state"].instances) == (1, 2)
    assert short["delta_out"].flops == 2 * 2 * 32 * 64
