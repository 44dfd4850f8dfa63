"""The layers whose state does not grow: what one layer does for a token, and keeps of a request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stallscope.analyzers.cost.kv_bytes import delta_bytes, mamba_bytes
from stallscope.profiler.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Recurrent:
    """Layers of one kind: FLOPs and activations of a token, bytes of a request, in one layer."""

    name: str
    layers: int
    flops: float
    state_bytes: float
    activations: int
    heads: int


def recurrent_layers(spec: ModelSpec, kv_dtype: str) -> Iterator[Recurrent]:
    """Yield a model's kinds of recurrent layers."""
    linear, states = spec.linear_attention, spec.state_space
    if linear is not None:
        yield Recurrent(
            name="delta_state",
            layers=linear.layers,
            # Decay, what the key recalls, the update by it, what the query recalls: 1, 2, 2 and 2.
            flops=7.0 * linear.value_heads * linear.key_dim * linear.value_dim,
            state_bytes=delta_bytes(spec, kv_dtype) / linear.layers,
            activations=linear.conv_channels + linear.value_heads * linear.value_dim,
            heads=linear.value_heads,
        )
    if states is not None:
        yield Recurrent(
            name="mamba_state",
            layers=states.layers,
            # Decay, the input's outer product and its addition, the output's sum: 1, 1, 1 and 2.
            flops=5.0 * states.channels * states.state_size,
            state_bytes=mamba_bytes(spec, kv_dtype) / states.layers,
            activations=states.channels + states.conv_channels + states.heads,
            heads=states.heads or states.channels,
        )
