"""Parameters, weight bytes and KV bytes against hand arithmetic and tensors laid out for real."""

from __future__ import annotations

import dataclasses
import random

import pytest
from step_rows import TINY

from stallscope.analyzers.cost.arithmetic import (
    BLOCK_LINEARS,
    ffn_share,
    linear_shape,
    linear_weight_bytes,
    num_parameters,
    parameter_counts,
    step_weight_bytes,
    weight_bytes,
)
from stallscope.analyzers.cost.kv_bytes import kv_bytes_per_token, kv_tokens
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import ModelSpec

MIB, GIB = 2**20, 2**30

# Totals as published with the checkpoints (tests/unit/profiler holds the same against
# transformers' own modules).
PUBLISHED = {
    "llama-7b": 6_738_415_616,
    "llama-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "qwen2.5-0.5b": 494_032_768,  # tied, with QKV bias
    "qwen2.5-7b": 7_615_616_512,  # untied, with QKV bias
    "mistral-7b": 7_248_023_552,
    "tiny-26m": 26_089_984,  # 6 x 2,950,144 + 2 x 8192 x 512 + 512
}


@pytest.mark.parametrize(("name", "total"), PUBLISHED.items())
def test_parameters_are_the_published_ones(name: str, total: int) -> None:
    assert num_parameters(load_model(name)) == total


def test_ffn_share_of_llama_7b() -> None:
    # 32 layers x 3 x 4096 x 11008 = 4,328,521,728 of 6,738,415,616.
    assert ffn_share(load_model("llama-7b")) == pytest.approx(4_328_521_728 / 6_738_415_616)
    assert ffn_share(load_model("llama-7b")) == pytest.approx(0.642, abs=0.0005)


def test_kinds_of_tensors_of_the_tiny_shape() -> None:
    tied = dataclasses.replace(TINY, tied_embeddings=True, qkv_bias=True)
    assert parameter_counts(tied) == {
        "embedding": 256 * 64,
        "q_proj": 3 * 64 * 64,
        "k_proj": 3 * 64 * 32,
        "v_proj": 3 * 64 * 32,
        "o_proj": 3 * 64 * 64,
        "gate_proj": 3 * 64 * 160,
        "up_proj": 3 * 64 * 160,
        "down_proj": 3 * 64 * 160,
        "qkv_bias": 3 * (64 + 32 + 32),
        "norms": 7 * 64,  # two a layer and the last
        "lm_head": 0,
    }
    normed = dataclasses.replace(TINY, qk_norm=True)
    assert parameter_counts(normed)["norms"] == 7 * 64 + 3 * 2 * 16  # heads of 16
    assert parameter_counts(TINY)["lm_head"] == 256 * 64
    assert parameter_counts(TINY)["qkv_bias"] == 0


def test_kv_bytes_of_the_document() -> None:
    seven, thirteen = (kv_bytes_per_token(load_model(f"llama-{n}b"), "fp16") for n in (7, 13))
    assert 2048 * seven == 1_073_741_824  # 2 x 32 x 32 x 128 x 2048 x 2: 1 GiB
    assert thirteen == 819_200
    assert {n: n * thirteen for n in (512, 1024, 2048, 4096)} == {
        512: 400 * MIB,
        1024: 800 * MIB,
        2048: 1.5625 * GIB,
        4096: 3.125 * GIB,
    }


def test_kv_bytes_of_grouped_heads_by_dtype() -> None:
    llama3 = load_model("llama-3-8b")  # 32 layers, 8 KV heads of 128
    sizes = {dtype: kv_bytes_per_token(llama3, dtype) for dtype in ("fp32", "bf16", "fp8", "int4")}
    assert sizes == {"fp32": 262_144, "bf16": 131_072, "fp8": 65_536, "int4": 32_768}


def test_kv_heads_of_a_rank_are_rounded_up() -> None:
    spec = dataclasses.replace(TINY, num_heads=24, num_kv_heads=6)
    per_head = 2 * 3 * 16 * 2  # K and V x layers x head_dim x bytes
    got = {n: kv_bytes_per_token(spec, "fp16", tensor_parallel=n) for n in (1, 2, 4, 6, 12)}
    assert got == {1: 6 * per_head, 2: 3 * per_head, 4: 2 * per_head, 6: per_head, 12: per_head}


def quantised_bytes(inputs: int, outputs: int, dtype: str) -> int:
    """Allocate a linear's tensors as checkpoints of this format store them; sum their bytes."""
    import torch

    if dtype == "int4":  # AutoAWQ: eight values to an int32, a scale and a zero a group of 128
        groups = -(-inputs // 128)
        parts = [
            torch.empty(inputs, outputs // 8, dtype=torch.int32),
            torch.empty(groups, outputs // 8, dtype=torch.int32),
            torch.empty(groups, outputs, dtype=torch.float16),
        ]
    elif dtype == "int8":  # a scale an output channel
        parts = [
            torch.empty(outputs, inputs, dtype=torch.int8),
            torch.empty(outputs, dtype=torch.float16),
        ]
    else:  # a scale a tensor
        parts = [
            torch.empty(outputs, inputs, dtype=torch.float8_e4m3fn),
            torch.empty((), dtype=torch.float32),
        ]
    return sum(part.nbytes for part in parts)


@pytest.mark.parametrize("dtype", ["int4", "int8", "fp8"])
@pytest.mark.parametrize("hidden", [128, 512, 200])  # 200 fills a second group in part
def test_quantised_linear_takes_the_bytes_of_its_tensors(dtype: str, hidden: int) -> None:
    spec = dataclasses.replace(TINY, hidden_size=hidden, num_heads=8, intermediate_size=384)
    for name in BLOCK_LINEARS:
        inputs, outputs = linear_shape(spec, name)
        assert linear_weight_bytes(spec, name, dtype) == quantised_bytes(inputs, outputs, dtype)


def test_quantised_models_keep_head_embedding_norms_and_bias_at_16_bits() -> None:
    spec = dataclasses.replace(TINY, qkv_bias=True)
    plain = 2 * (2 * 256 * 64 + 7 * 64 + 3 * 128)
    for dtype in ("int4", "int8", "fp8"):
        blocks = sum(quantised_bytes(*linear_shape(spec, name), dtype) for name in BLOCK_LINEARS)
        assert weight_bytes(spec, dtype) == 3 * blocks + plain
        assert linear_weight_bytes(spec, "lm_head", dtype) == 2 * 256 * 64
        assert step_weight_bytes(spec, dtype) == 3 * blocks + 2 * 256 * 64


def test_int4_llama_7b_by_hand() -> None:
    # The blocks' linears hold 32 x (4 x 4096^2 + 3 x 4096 x 11008) = 6,476,005,376 elements, all
    # over inputs divisible by 128: half a byte each, and 2.5 bytes for every 128 of them.
    blocks = 6_476_005_376 * (0.5 + 2.5 / 128)
    head = 2 * 32_000 * 4096
    assert step_weight_bytes(load_model("llama-7b"), "int4") == pytest.approx(blocks + head)


def test_a_step_reads_a_tied_table_once_and_no_input_embedding() -> None:
    tied = dataclasses.replace(TINY, tied_embeddings=True)
    block = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 160
    assert step_weight_bytes(TINY, "fp32") == 4 * (3 * block + 256 * 64)
    assert step_weight_bytes(tied, "fp32") == step_weight_bytes(TINY, "fp32")
    # 6,738,415,616 less the input embedding (32,000 x 4096) and 65 norms, at 2 bytes.
    llama = 2 * (6_738_415_616 - 131_072_000 - 65 * 4096)
    assert step_weight_bytes(load_model("llama-7b"), "fp16") == llama == 13_214_154_752


def random_spec(rng: random.Random) -> ModelSpec:
    kv_heads = rng.randint(1, 4)
    heads = kv_heads * rng.randint(1, 3)
    return dataclasses.replace(
        TINY,
        hidden_size=4 * heads * rng.randint(1, 4),
        intermediate_size=8 * rng.randint(2, 12),
        num_layers=rng.randint(1, 3),
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=8 * rng.randint(1, 3),
        vocab_size=rng.randint(10, 99),
        tied_embeddings=rng.random() < 0.5,
        qkv_bias=(bias := rng.random() < 0.5),
        o_bias=bias,
    )


@pytest.mark.parametrize("seed", range(8))
def test_random_shapes_count_as_transformers_builds_them(seed: int) -> None:
    import torch
    import transformers

    spec = random_spec(random.Random(seed))
    # A bias on all four attention projections.
    config = transformers.LlamaConfig(
        hidden_size=spec.hidden_size,
        intermediate_size=spec.intermediate_size,
        num_hidden_layers=spec.num_layers,
        num_attention_heads=spec.num_heads,
        num_key_value_heads=spec.num_kv_heads,
        head_dim=spec.head_dim,
        vocab_size=spec.vocab_size,
        tie_word_embeddings=spec.tied_embeddings,
        attention_bias=spec.qkv_bias,
    )
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config)
    theirs = sum(p.numel() for p in model.parameters())
    assert num_parameters(spec) == theirs
    assert weight_bytes(spec, "fp32") == 4 * theirs


@pytest.mark.parametrize(
    ("name", "total"),
    # As published with the checkpoints.
    [
        ("qwen3-0.6b", 596_049_920),
        ("qwen3-8b", 8_190_735_360),
        ("mistral-7b-v0.1", 7_241_732_096),
    ],
)
def test_models_with_head_norms_or_a_window(name: str, total: int) -> None:
    assert num_parameters(load_model(name)) == total


def test_a_window_bounds_the_tokens_that_are_kept() -> None:
    mistral = load_model("mistral-7b-v0.1")
    # A token costs the same; 2 x 32 layers x 8 heads x 128 x 2 bytes.
    assert kv_bytes_per_token(mistral, "bf16") == 131_072
    assert [kv_tokens(mistral, n) for n in (1, 4096, 4097, 30_000)] == [1, 4096, 4096, 4096]
    assert kv_tokens(load_model("mistral-7b"), 30_000) == 30_000
