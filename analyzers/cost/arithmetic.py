"""Exact counts: parameters by tensor, bytes of weights, bytes of KV cache."""

from __future__ import annotations

import math
from collections.abc import Mapping

from stallscope.profiler.spec import DTYPE_BYTES, ModelSpec

# Weight-only formats quantise the linears of the blocks; embedding, LM head and norms stay at
# 16 bit (what AutoGPTQ, AutoAWQ and the fp8 checkpoints of vLLM's compressor all do).
_QUANTISED = frozenset({"fp8", "int8", "int4"})
_GROUP = 128  # elements of the input dimension that share an int4 scale and zero point
_SCALE_BYTES = 2.0

BLOCK_LINEARS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def linear_shape(spec: ModelSpec, name: str) -> tuple[int, int]:
    """Return (inputs, outputs) of a linear: one of BLOCK_LINEARS or "lm_head"."""
    q_width = spec.num_heads * spec.head_dim
    kv_width = spec.num_kv_heads * spec.head_dim
    shapes = {
        "q_proj": (spec.hidden_size, q_width),
        "k_proj": (spec.hidden_size, kv_width),
        "v_proj": (spec.hidden_size, kv_width),
        "o_proj": (q_width, spec.hidden_size),
        "gate_proj": (spec.hidden_size, spec.intermediate_size),
        "up_proj": (spec.hidden_size, spec.intermediate_size),
        "down_proj": (spec.intermediate_size, spec.hidden_size),
        "lm_head": (spec.hidden_size, spec.vocab_size),
    }
    return shapes[name]


def parameter_counts(spec: ModelSpec) -> Mapping[str, int]:
    """Count the elements of each kind of tensor over the whole model; a tied head counts once."""
    counts = {"embedding": spec.vocab_size * spec.hidden_size}
    for name in BLOCK_LINEARS:
        counts[name] = spec.num_layers * math.prod(linear_shape(spec, name))
    bias = (spec.num_heads + 2 * spec.num_kv_heads) * spec.head_dim
    counts["qkv_bias"] = spec.num_layers * bias if spec.qkv_bias else 0
    qk_norm = (
        2 * spec.head_dim if spec.qk_norm else 0
    )  # one weight for all query heads, one for keys
    counts["norms"] = (2 * spec.num_layers + 1) * spec.hidden_size + spec.num_layers * qk_norm
    counts["lm_head"] = 0 if spec.tied_embeddings else spec.vocab_size * spec.hidden_size
    return counts


def num_parameters(spec: ModelSpec) -> int:
    """Count all parameters."""
    return sum(parameter_counts(spec).values())


def ffn_share(spec: ModelSpec) -> float:
    """Return the gated MLP's share of all parameters (document, section 3.1: about two thirds)."""
    counts = parameter_counts(spec)
    return (counts["gate_proj"] + counts["up_proj"] + counts["down_proj"]) / num_parameters(spec)


def linear_weight_bytes(spec: ModelSpec, name: str, dtype: str) -> float:
    """Return the bytes of one linear's weight, scales and zero points included."""
    inputs, outputs = linear_shape(spec, name)
    if name == "lm_head" and dtype in _QUANTISED:
        dtype = "fp16"
    payload = inputs * outputs * DTYPE_BYTES[dtype]
    if dtype == "int4":
        groups = math.ceil(inputs / _GROUP) * outputs
        return payload + groups * (_SCALE_BYTES + DTYPE_BYTES["int4"])
    if dtype == "int8":
        return payload + outputs * _SCALE_BYTES
    if dtype == "fp8":
        return payload + 4.0  # one fp32 scale per tensor
    return payload


def _plain_bytes(dtype: str) -> float:
    return 2.0 if dtype in _QUANTISED else DTYPE_BYTES[dtype]


def weight_bytes(spec: ModelSpec, dtype: str) -> float:
    """Return the bytes that all weights occupy."""
    counts = parameter_counts(spec)
    blocks = sum(linear_weight_bytes(spec, name, dtype) for name in BLOCK_LINEARS)
    plain = counts["embedding"] + counts["lm_head"] + counts["norms"] + counts["qkv_bias"]
    return spec.num_layers * blocks + plain * _plain_bytes(dtype)


def step_weight_bytes(spec: ModelSpec, dtype: str) -> float:
    """Return the weight bytes one step must read: the linears of the blocks and the LM head.

    The input embedding is a look-up of a few rows, so its table is not read; a tied table is read
    once, as the head.
    """
    blocks = sum(linear_weight_bytes(spec, name, dtype) for name in BLOCK_LINEARS)
    return spec.num_layers * blocks + linear_weight_bytes(spec, "lm_head", dtype)


def kv_bytes_per_token(spec: ModelSpec, kv_dtype: str, *, tensor_parallel: int = 1) -> int:
    """Return KV bytes per token on each rank: 2 · layers · KV heads · head_dim · bytes.

    (document, section 3.2). A rank holds ceil(KV heads / ranks) heads. With a sliding window no
    more tokens than that are held: see kv_tokens.
    """
    heads = math.ceil(spec.num_kv_heads / tensor_parallel)
    return int(2 * spec.num_layers * heads * spec.head_dim * DTYPE_BYTES[kv_dtype])


def kv_tokens(spec: ModelSpec, tokens: int) -> int:
    """Return how many of a sequence's tokens its next one can still attend to."""
    return tokens if spec.sliding_window is None else min(tokens, spec.sliding_window)
