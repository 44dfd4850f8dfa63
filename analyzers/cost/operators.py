"""FLOPs and bytes of every operator in one step of a given shape."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stallscope.analyzers.cost.arithmetic import BLOCK_LINEARS, linear_shape, linear_weight_bytes
from stallscope.profiler.spec import DTYPE_BYTES, ModelSpec, attention_pairs, keys_read

# Which linears an engine runs as one matrix product; times are measured per group.
GROUPS = {
    "q_proj": "qkv",
    "k_proj": "qkv",
    "v_proj": "qkv",
    "o_proj": "o",
    "gate_proj": "gate_up",
    "up_proj": "gate_up",
    "down_proj": "down",
    "lm_head": "lm_head",
}


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


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator; FLOPs and bytes are of a single instance, `instances` a step."""

    name: str
    group: str  # a value of GROUPS, or "attention"
    instances: int
    rows: int
    flops: float
    weight_bytes: float
    kv_bytes: float
    activation_bytes: float
    kv_heads: int = 1

    @property
    def bytes(self) -> float:
        """All bytes of one instance."""
        return self.weight_bytes + self.kv_bytes + self.activation_bytes

    def bytes_on_rank(self, ranks: int) -> float:
        """Return the bytes of one instance on each rank; KV heads fewer than ranks are copied."""
        kv = self.kv_bytes * math.ceil(self.kv_heads / ranks) / self.kv_heads
        return (self.weight_bytes + self.activation_bytes) / ranks + kv

    @property
    def intensity(self) -> float:
        """FLOP per byte moved."""
        return self.flops / self.bytes


def activation_bytes_per_element(dtype: str) -> float:
    """Return the width of activations: weight-only formats compute in 16 bit."""
    return max(DTYPE_BYTES[dtype], 2.0)


def _linear(spec: ModelSpec, name: str, rows: int, dtype: str) -> Operator:
    inputs, outputs = linear_shape(spec, name)
    return Operator(
        name=name,
        group=GROUPS[name],
        instances=1 if name == "lm_head" else spec.num_layers,
        rows=rows,
        flops=2.0 * rows * inputs * outputs,
        weight_bytes=linear_weight_bytes(spec, name, dtype),
        kv_bytes=0.0,
        activation_bytes=rows * (inputs + outputs) * activation_bytes_per_element(dtype),
    )


def attention_operator(spec: ModelSpec, shape: StepShape, *, dtype: str, kv_dtype: str) -> Operator:
    """Scores over every cached key and the weighted sum of the values."""
    width = spec.num_heads * spec.head_dim
    kv_width = 2 * spec.num_kv_heads * spec.head_dim * DTYPE_BYTES[kv_dtype]
    return Operator(
        name="attention",
        group="attention",
        instances=spec.num_layers,
        rows=shape.tokens,
        # Scores and weighted sum: a multiply and an add each, per pair and query width.
        flops=4.0 * width * shape.attention_pairs,
        weight_bytes=0.0,
        kv_bytes=kv_width * shape.kv_read_tokens,
        activation_bytes=2.0 * shape.tokens * width * activation_bytes_per_element(dtype),
        kv_heads=spec.num_kv_heads,
    )


def step_operators(
    spec: ModelSpec, shape: StepShape, *, dtype: str, kv_dtype: str
) -> tuple[Operator, ...]:
    """List the operators of a step, in the order in which a layer runs them.

    Norms, RoPE and residuals are left out: fused engines run them in other operators' shadow, and
    where they do not, their time is part of what the budget leaves unexplained.
    """
    attention = attention_operator(spec, shape, dtype=dtype, kv_dtype=kv_dtype)
    before = [_linear(spec, name, shape.tokens, dtype) for name in BLOCK_LINEARS[:3]]
    after = [_linear(spec, name, shape.tokens, dtype) for name in BLOCK_LINEARS[3:]]
    operators = [*before, attention, *after]
    if shape.logit_rows:
        operators.append(_linear(spec, "lm_head", shape.logit_rows, dtype))
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
