"""Bytes of quantised models against tensors built in the layouts that checkpoints have."""

from __future__ import annotations

import dataclasses

import pytest
from step_rows import TINY

from stallscope.analyzers.cost.arithmetic import linears_of, weight_bytes
from stallscope.analyzers.cost.weight_formats import matrix_bytes
from stallscope.profiler.model_parts import Experts, Quantization
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import ModelSpec

MIXED = dataclasses.replace(TINY, mixture=Experts(8, 2, 96, 3))


def packed(inputs: int, outputs: int, method: str, group: int) -> int:
    """Allocate an int4 linear as AutoGPTQ or AutoAWQ store it; sum the bytes."""
    import torch

    groups = -(-inputs // group)
    weight = (inputs // 8, outputs) if method == "gptq" else (inputs, outputs // 8)
    parts = [
        torch.empty(weight, dtype=torch.int32, device="meta"),
        torch.empty(groups, outputs // 8, dtype=torch.int32, device="meta"),
        torch.empty(groups, outputs, dtype=torch.float16, device="meta"),
    ]
    if method == "gptq":
        parts.append(torch.empty(inputs, dtype=torch.int32, device="meta"))
    return sum(part.nbytes for part in parts)


@pytest.mark.parametrize("method", ["gptq", "awq"])
@pytest.mark.parametrize("group", [128, 32])
@pytest.mark.parametrize("name", ["llama-7b", "llama-3-8b", "qwen2.5-7b"])
def test_whole_models_in_int4(name: str, method: str, group: int) -> None:
    spec = dataclasses.replace(load_model(name), quantization=Quantization(method, group))
    blocks = sum(
        n.layers * packed(n.inputs, n.outputs, method, group)
        for n in linears_of(spec)
        if n.name != "lm_head"
    )
    # Embedding, LM head, norms and biases stay in 16 bit.
    norms = (2 * spec.num_layers + 1) * spec.hidden_size
    bias = (spec.num_heads + 2 * spec.num_kv_heads) * spec.head_dim * spec.num_layers
    plain = 2 * spec.vocab_size * spec.hidden_size + norms + (bias if spec.qkv_bias else 0)
    assert weight_bytes(spec, "int4") == blocks + 2 * plain


def test_block_scales_of_fp8() -> None:
    # 160 x 64 in blocks of 128 x 128: two by one.
    spec = dataclasses.replace(TINY, quantization=Quantization("fp8", block=(128, 128)))
    gate = next(n for n in linears_of(spec) if n.name == "gate_proj")
    assert matrix_bytes(spec, gate, "fp8") == 160 * 64 + 2 * 4


def test_mxfp4_is_of_the_experts_alone_where_there_are_any() -> None:
    sizes = {n.name: matrix_bytes(MIXED, n, "mxfp4") for n in linears_of(MIXED)}
    assert sizes["expert_up_proj"] == 64 * 96 / 2 + 2 * 96  # two blocks of 32 in 64 inputs
    assert sizes["q_proj"] == 2 * 64 * 64
    assert sizes["router"] == 2 * 64 * 8
    dense = {n.name: matrix_bytes(TINY, n, "mxfp4") for n in linears_of(TINY)}
    assert dense["q_proj"] == 64 * 64 / 2 + 2 * 64


def rank_bytes(spec: ModelSpec, ranks: int) -> float:
    return weight_bytes(spec, "bf16", tensor_parallel=ranks)


def test_what_each_rank_holds() -> None:
    # Norms, 7 x 64, and routers, 3 x 64 x 8, lie whole on each; all else is split in two.
    whole = 7 * 64 + 3 * 64 * 8
    assert rank_bytes(MIXED, 2) == (weight_bytes(MIXED, "bf16") - 2 * whole) / 2 + 2 * whole
    # Two KV heads on four ranks: each holds one, half of k_proj and v_proj.
    more = 2 * 3 * 2 * 64 * 32 * (1 / 2 - 1 / 4)
    norms = 2 * 7 * 64
    assert rank_bytes(TINY, 4) == (weight_bytes(TINY, "bf16") - norms) / 4 + norms + more
    assert rank_bytes(TINY, 1) == weight_bytes(TINY, "bf16")
