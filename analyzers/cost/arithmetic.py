"""Exact counts: parameters by tensor, and the bytes of weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

from stallscope.analyzers.cost.linears import (
    Linear,
    attention_inputs,
    mlp_linears,
    model_linears,
)
from stallscope.analyzers.cost.weight_formats import matrix_bytes, plain_bytes
from stallscope.profiler.spec import ModelSpec

# Of a plain dense model; see linears.py for all there are.
BLOCK_LINEARS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@lru_cache(maxsize=64)
def linears_of(spec: ModelSpec) -> tuple[Linear, ...]:
    """List a model's linears; as model_linears, which a simulation asks for at every step."""
    return model_linears(spec)


def _linear(spec: ModelSpec, name: str) -> Linear:
    return next(linear for linear in linears_of(spec) if linear.name == name)


def linear_shape(spec: ModelSpec, name: str) -> tuple[int, int]:
    """Return (inputs, outputs) of a linear by its name."""
    linear = _linear(spec, name)
    return linear.inputs, linear.outputs


def linear_weight_bytes(spec: ModelSpec, name: str, dtype: str) -> float:
    """Return the bytes of one copy of a linear's weight, scales and zero points included."""
    return matrix_bytes(spec, _linear(spec, name), dtype)


def parameter_counts(spec: ModelSpec) -> Mapping[str, int]:
    """Count the elements of each kind of tensor over the whole model; a tied head counts once."""
    # A draft layer shares both tables with its model.
    table = 0 if spec.joins_hidden else spec.vocab_size * spec.hidden_size
    counts = {"embedding": table}
    linears = linears_of(spec)
    counts |= {linear.name: linear.elements for linear in linears}
    counts["lm_head"] = 0 if spec.tied_embeddings else table
    counts["qkv_bias"] = sum(
        linear.bias_elements for linear in attention_inputs(spec) if linear.group == "qkv"
    )
    counts["norms"] = _norm_elements(spec)
    others = {
        "other_biases": sum(linear.bias_elements for linear in linears) - counts["qkv_bias"],
        "attention_sinks": spec.num_layers * spec.num_heads if spec.attention_sinks else 0,
        "delta_rest": _delta_elements(spec),
        "state_rest": _state_elements(spec),
    }
    return counts | {name: count for name, count in others.items() if count}


def _norm_elements(spec: ModelSpec) -> int:
    """Norms over the hidden size, over each head, and over the latent's low ranks."""
    # One weight for all query heads, one for keys.
    heads = 2 * spec.head_dim * spec.attention_layers if spec.qk_norm else 0
    hidden = (spec.layer_norms * spec.num_layers + 1) * spec.hidden_size
    latent = spec.latent
    ranks = 0 if latent is None else latent.kv_rank + (latent.query_rank or 0)
    hidden += 2 * spec.num_layers * spec.hidden_size if spec.joins_hidden else 0
    return (hidden + heads) * (2 if spec.norm_bias else 1) + spec.num_layers * ranks


def _delta_elements(spec: ModelSpec) -> int:
    """The convolution, the decay and its bias by head, and the output norm."""
    linear = spec.linear_attention
    if linear is None:
        return 0
    each = linear.conv_width * linear.conv_channels + 2 * linear.value_heads + linear.value_dim
    return linear.layers * each


def _state_elements(spec: ModelSpec) -> int:
    """The convolution, decay, skip and norms of the Mamba layers."""
    states = spec.state_space
    return 0 if states is None else states.layers * states.rest_elements


def num_parameters(spec: ModelSpec) -> int:
    """Count all parameters."""
    return sum(parameter_counts(spec).values())


def ffn_share(spec: ModelSpec) -> float:
    """Return the MLPs' share of all parameters (document, section 3.1: about two thirds)."""
    mlp = sum(linear.elements for linear in mlp_linears(spec) if linear.group != "router")
    return mlp / num_parameters(spec)


def weight_bytes(spec: ModelSpec, dtype: str, *, tensor_parallel: int = 1) -> float:
    """Return the bytes that all weights occupy, on each of so many ranks.

    Embedding and LM head are split by vocabulary; norms, biases, routers and the narrow matrices
    of latent attention lie whole on each rank, as do KV heads fewer than ranks.
    """
    counts, linears = parameter_counts(spec), linears_of(spec)
    matrices = math.fsum(
        _on_rank(spec, linear, tensor_parallel) * _stored_bytes(spec, linear, dtype)
        for linear in linears
        if linear.name != "lm_head"
    )
    tables = counts["embedding"] + counts["lm_head"]
    small = sum(counts.values()) - tables - sum(counts[n.name] for n in linears[:-1])
    return matrices + (tables / tensor_parallel + small) * plain_bytes(dtype)


def quantised_bytes(spec: ModelSpec, dtype: str, *, tensor_parallel: int = 1) -> float:
    """Return, of weight_bytes, those of the matrices that weight formats change."""
    return math.fsum(
        _on_rank(spec, linear, tensor_parallel) * _stored_bytes(spec, linear, dtype)
        for linear in linears_of(spec)
        if linear.is_quantised
    )


def _stored_bytes(spec: ModelSpec, linear: Linear, dtype: str) -> float:
    return linear.layers * linear.copies * matrix_bytes(spec, linear, dtype)


def _on_rank(spec: ModelSpec, linear: Linear, ranks: int) -> float:
    """Return the part of a linear that each rank holds."""
    if not linear.is_shared:
        return 1.0
    if linear.name in ("k_proj", "v_proj"):
        return math.ceil(spec.num_kv_heads / ranks) / spec.num_kv_heads
    return 1.0 / ranks


def step_weight_bytes(spec: ModelSpec, dtype: str, *, rows: int = 1) -> float:
    """Return the weight bytes a step of `rows` tokens must read: the linears and the LM head.

    The input embedding is a look-up of a few rows, so its table is not read; a tied table is read
    once, as the head. Of experts only those are read that a token goes to: with one row, the
    least a step can read.
    """
    return math.fsum(
        linear.layers * linear.copies_read(rows) * matrix_bytes(spec, linear, dtype)
        for linear in linears_of(spec)
    )
