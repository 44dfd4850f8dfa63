"""What some models have beside or instead of plain attention and a plain MLP."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention: one compressed vector a token is cached, for all heads.

    Sizes in elements; `query_rank` None where queries are not compressed.
    """

    kv_rank: int
    rope_dim: int  # of the key part that carries the position, shared by all heads
    nope_dim: int  # of each head's key part that does not
    value_dim: int
    query_rank: int | None = None

    @property
    def cached_elements(self) -> int:
        """Elements cached per token and layer."""
        return self.kv_rank + self.rope_dim


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts in `layers` of the layers; the others have the plain MLP.

    Each token passes `per_token` of `count` gated MLPs of `intermediate_size`, and one of
    `shared_size` that all pass (0: none).
    """

    count: int
    per_token: int
    intermediate_size: int
    layers: int
    shared_size: int = 0
    shared_gate: bool = False  # a learnt weight of the shared expert's output
    bias: bool = False  # on the router and on the experts' products


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """Gated delta-rule layers: their state stays as large as it is, however long the context."""

    layers: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_width: int

    @property
    def conv_channels(self) -> int:
        """Channels of the short convolution over queries, keys and values."""
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim

    @property
    def state_elements(self) -> int:
        """Elements a request keeps in each of these layers: its matrix, and the convolution's."""
        matrix = self.value_heads * self.key_dim * self.value_dim
        return matrix + (self.conv_width - 1) * self.conv_channels


@dataclass(frozen=True, slots=True)
class Quantization:
    """How a checkpoint's weights are stored: `method` as config.json names it."""

    method: str
    group_size: int = 128  # elements of the input dimension that share an int4 scale
    block: tuple[int, ...] = ()  # of fp8 with a scale a block: its outputs and inputs
