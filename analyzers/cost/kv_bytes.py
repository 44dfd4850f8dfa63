"""Bytes of KV cache: per token, of a whole sequence, and what does not grow at all."""

from __future__ import annotations

import math

from stallscope.analyzers.cost.weight_formats import QUANTISED
from stallscope.profiler.spec import DTYPE_BYTES, ModelSpec, Subject
from stallscope.profiler.wording import figure

_LEAST_STATE_BYTES = 2.0  # engines keep recurrent states at 16 bit or more, whatever the KV dtype


def kv_bytes_per_token(spec: ModelSpec, kv_dtype: str, *, tensor_parallel: int = 1) -> int:
    """Return KV bytes per token on each rank: 2 · layers · KV heads · head_dim · bytes.

    (document, section 3.2). A rank holds ceil(KV heads / ranks) heads; a latent, layers · (rank +
    rope) · bytes, lies whole on every rank. With a sliding window no more tokens than that are
    held: see kv_bytes and kv_tokens.
    """
    return int(spec.attention_layers * layer_bytes(spec, kv_dtype, tensor_parallel))


def layer_bytes(spec: ModelSpec, kv_dtype: str, tensor_parallel: int = 1) -> float:
    """Return the bytes that one attention layer caches per token on each rank."""
    if spec.latent is not None:
        return spec.stored.kv * spec.latent.cached_elements * DTYPE_BYTES[kv_dtype]
    heads = math.ceil(spec.num_kv_heads / tensor_parallel)
    return spec.stored.kv * 2 * heads * spec.head_dim * DTYPE_BYTES[kv_dtype]


def kv_tokens(spec: ModelSpec, tokens: int) -> int:
    """Return how many of a sequence's tokens its next one can attend to in the widest layer."""
    return tokens if spec.sliding_window is None else min(tokens, spec.sliding_window)


def kv_bytes(spec: ModelSpec, tokens: int, kv_dtype: str, *, tensor_parallel: int = 1) -> int:
    """Return the bytes a sequence of `tokens` holds on each rank, state that never grows included.

    Layers with a window hold no more than it; what engines round up to whole blocks is left out.
    """
    local = min(tokens, spec.local_window or tokens)
    cached = (spec.attention_layers - spec.local_layers) * kv_tokens(spec, tokens)
    cached += spec.local_layers * local
    each = layer_bytes(spec, kv_dtype, tensor_parallel)
    return int(cached * each) + state_bytes(spec, kv_dtype, tensor_parallel=tensor_parallel)


def state_bytes(spec: ModelSpec, kv_dtype: str, *, tensor_parallel: int = 1) -> int:
    """Return the bytes of recurrent state that a request holds on each rank, at any length."""
    held = delta_bytes(spec, kv_dtype) + mamba_bytes(spec, kv_dtype)
    return math.ceil(held / tensor_parallel)


def delta_bytes(spec: ModelSpec, kv_dtype: str) -> float:
    """Return the bytes of state of all layers of linear attention."""
    linear = spec.linear_attention
    if linear is None:
        return 0.0
    return linear.layers * linear.state_elements * _element_bytes(kv_dtype)


def mamba_bytes(spec: ModelSpec, kv_dtype: str) -> float:
    """Return the bytes of state of all Mamba layers: what channels keep, and the convolution's."""
    states = spec.state_space
    if states is None:
        return 0.0
    element = _element_bytes(kv_dtype)
    kept = states.channels * states.state_size * (states.state_bytes or element)
    return states.layers * (kept + (states.conv_width - 1) * states.conv_channels * element)


def _element_bytes(kv_dtype: str) -> float:
    return max(_LEAST_STATE_BYTES, DTYPE_BYTES[kv_dtype])


def kv_formula(spec: ModelSpec) -> str:
    """Say by which formula a token's KV bytes are counted."""
    known = spec.stored.kv
    stored = "" if known == 1.0 else f" · {figure(known)} by the engine's own figure"
    if spec.latent is not None:
        return f"layers · (KV rank + rope) · bytes{stored}"
    layers = "layers" if spec.attention_layers == spec.num_layers else "attention layers"
    return f"2 · {layers} · KV heads · head_dim · bytes{stored}"


def cache_dtype(subject: Subject) -> str | None:
    """Return the KV cache's dtype: as stated, else that in which the weights' format computes."""
    if subject.kv_dtype is not None or subject.dtype is None:
        return subject.kv_dtype
    return "fp16" if subject.dtype in QUANTISED else subject.dtype
