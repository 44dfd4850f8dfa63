"""FLOPs and bytes of every operator in one step of a given shape."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from stallscope.analyzers.cost.arithmetic import linears_of
from stallscope.analyzers.cost.kv_bytes import layer_bytes
from stallscope.analyzers.cost.linears import Linear
from stallscope.analyzers.cost.recurrent import recurrent_layers
from stallscope.analyzers.cost.weight_formats import matrix_bytes
from stallscope.profiler.model_parts import Latent
from stallscope.profiler.spec import DTYPE_BYTES, ModelSpec, attention_pairs, keys_read

_AFTER_ATTENTION = ("o_proj", "delta_out", "state_out")


@dataclass(frozen=True, slots=True)
class StepShape:
    """The work of one step.

    `tokens` rows go through the blocks, `logit_rows` through the LM head; `kv_read_tokens` is the
    sum over requests of KV entries read, `attention_pairs` of (new token, attended key) pairs.
    """

    tokens: int
    logit_rows: int
    kv_read_tokens: int
    attention_pairs: int

    def times(self, count: int) -> StepShape:
        """Return the work of so many alike, side by side in one step."""
        if count == 1:
            return self
        sizes = (self.tokens, self.logit_rows, self.kv_read_tokens, self.attention_pairs)
        return StepShape(*(count * size for size in sizes))


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator; FLOPs and bytes are of a single instance, `instances` a step."""

    name: str
    group: str  # of a linear (see linears.py), or "attention"
    instances: int
    rows: int
    flops: float
    weight_bytes: float
    kv_bytes: float
    activation_bytes: float
    kv_heads: int = 1
    is_shared: bool = True  # by tensor-parallel ranks; else each does all of it

    @property
    def bytes(self) -> float:
        """All bytes of one instance."""
        return self.weight_bytes + self.kv_bytes + self.activation_bytes

    def bytes_on_rank(self, ranks: int) -> float:
        """Return the bytes of one instance on each rank; KV heads fewer than ranks are copied."""
        kv = self.kv_bytes * math.ceil(self.kv_heads / ranks) / self.kv_heads
        return (self.weight_bytes + self.activation_bytes) / self.shares(ranks) + kv

    def shares(self, ranks: int) -> int:
        """Return into how many parts so many ranks split its work."""
        return ranks if self.is_shared else 1

    @property
    def intensity(self) -> float:
        """FLOP per byte moved."""
        return self.flops / self.bytes


def activation_bytes_per_element(dtype: str) -> float:
    """Return the width of activations: weight-only formats compute in 16 bit."""
    return max(DTYPE_BYTES[dtype], 2.0)


def _linear(spec: ModelSpec, linear: Linear, rows: int, dtype: str) -> Operator:
    """A matrix product; of experts, those that so many rows touch, each row passing its own."""
    inputs, outputs = linear.inputs, linear.outputs
    passes = rows * linear.active
    return Operator(
        name=linear.name,
        group=linear.group,
        instances=linear.layers,
        rows=rows,
        flops=2.0 * passes * inputs * outputs,
        weight_bytes=linear.copies_read(rows) * matrix_bytes(spec, linear, dtype),
        kv_bytes=0.0,
        activation_bytes=passes * (inputs + outputs) * activation_bytes_per_element(dtype),
        is_shared=linear.is_shared,
    )


def attention_operators(
    spec: ModelSpec, shape: StepShape, *, dtype: str, kv_dtype: str
) -> tuple[Operator, ...]:
    """List what reads the cache: full layers, those with a window of their own, states."""
    if spec.latent is not None:
        return (_latent_attention(spec, spec.latent, shape, dtype=dtype, kv_dtype=kv_dtype),)
    full = spec.attention_layers - spec.local_layers
    found = [_heads("attention", full, spec, shape, dtype=dtype, kv_dtype=kv_dtype)] if full else []
    if spec.local_layers:
        near = _within(shape, spec.local_window or 0)
        layers = spec.local_layers
        found.append(_heads("attention_local", layers, spec, near, dtype=dtype, kv_dtype=kv_dtype))
    return (*found, *_states(spec, shape, dtype=dtype, kv_dtype=kv_dtype))


def _within(shape: StepShape, window: int) -> StepShape:
    """Bound what a step attends to by a window: exact in decode where contexts are equally long."""
    most = shape.tokens * window
    read, pairs = min(shape.kv_read_tokens, most), min(shape.attention_pairs, most)
    return StepShape(shape.tokens, shape.logit_rows, read, pairs)


def _heads(
    name: str, layers: int, spec: ModelSpec, shape: StepShape, *, dtype: str, kv_dtype: str
) -> Operator:
    """Scores over every cached key and the weighted sum of the values."""
    width = spec.num_heads * spec.head_dim
    return Operator(
        name=name,
        group="attention",
        instances=layers,
        rows=shape.tokens,
        # Scores and weighted sum: a multiply and an add each, per pair and query width.
        flops=4.0 * width * shape.attention_pairs,
        weight_bytes=0.0,
        kv_bytes=layer_bytes(spec, kv_dtype) * shape.kv_read_tokens,
        activation_bytes=2.0 * shape.tokens * width * activation_bytes_per_element(dtype),
        kv_heads=spec.num_kv_heads,
    )


def _latent_attention(
    spec: ModelSpec, latent: Latent, shape: StepShape, *, dtype: str, kv_dtype: str
) -> Operator:
    """Attention over the latent, in the cheaper of the two forms that engines have.

    Over the latent itself each pair costs more; over keys and values made anew from it, earlier
    tokens' must be made first.
    """
    heads, wide = spec.num_heads, latent.cached_elements + latent.kv_rank
    made = latent.nope_dim + latent.value_dim
    narrow = made + latent.rope_dim
    earlier = max(0, shape.kv_read_tokens - shape.tokens)
    over_latent = 2.0 * heads * wide * shape.attention_pairs
    made_anew = 2.0 * heads * (narrow * shape.attention_pairs + made * latent.kv_rank * earlier)
    width = heads * narrow
    return Operator(
        name="attention",
        group="attention",
        instances=spec.num_layers,
        rows=shape.tokens,
        flops=min(over_latent, made_anew),
        weight_bytes=0.0,
        kv_bytes=layer_bytes(spec, kv_dtype) * shape.kv_read_tokens,
        activation_bytes=shape.tokens * width * activation_bytes_per_element(dtype),
    )


def _states(spec: ModelSpec, shape: StepShape, *, dtype: str, kv_dtype: str) -> Iterator[Operator]:
    """The states of recurrent layers, each read and written once a request."""
    requests = max(1, shape.logit_rows)
    for kind in recurrent_layers(spec, kv_dtype):
        yield Operator(
            name=kind.name,
            group="attention",
            instances=kind.layers,
            rows=shape.tokens,
            flops=kind.flops * shape.tokens,
            weight_bytes=0.0,
            kv_bytes=2.0 * requests * kind.state_bytes,
            activation_bytes=shape.tokens * kind.activations * activation_bytes_per_element(dtype),
            kv_heads=kind.heads,
        )


def step_operators(
    spec: ModelSpec, shape: StepShape, *, dtype: str, kv_dtype: str
) -> tuple[Operator, ...]:
    """List the operators of a step, in the order in which a layer runs them.

    Norms, RoPE and residuals are left out: fused engines run them in other operators' shadow, and
    where they do not, their time is part of what the budget leaves unexplained.
    """
    *blocks, head = linears_of(spec)
    made = [_linear(spec, linear, shape.tokens, dtype) for linear in blocks]
    at = next(i for i, linear in enumerate(blocks) if linear.name in _AFTER_ATTENTION)
    attention = attention_operators(spec, shape, dtype=dtype, kv_dtype=kv_dtype)
    operators = [*made[:at], *attention, *made[at:]]
    if shape.logit_rows:
        operators.append(_linear(spec, head, shape.logit_rows, dtype))
    return tuple(operators)


def decode_shape(batch: int, context: int, *, window: int | None = None) -> StepShape:
    """A decode step: `batch` requests, each at `context` tokens, its own included."""
    context = keys_read(context - 1, 1, window)
    return StepShape(batch, batch, batch * context, batch * context)


def prefill_shape(
    tokens: int, *, requests: int = 1, cached: int = 0, window: int | None = None
) -> StepShape:
    """A causal prefill of `tokens` new tokens over `cached` ones, in each of `requests`."""
    pairs = attention_pairs(cached, tokens, window)
    read = keys_read(cached, tokens, window)
    return StepShape(requests * tokens, requests, requests * read, requests * pairs)
