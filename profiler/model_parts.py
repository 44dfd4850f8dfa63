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
    width: int | None = None  # elements into and out of an expert, where not the hidden size


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
class StateSpace:
    """Mamba layers: their state stays as large as it is, however long the context.

    `channels` of all heads together keep `state_size` elements each. Without heads it is the first
    Mamba, whose step sizes come from a rank of `step_rank`; with heads the second.
    """

    layers: int
    channels: int
    state_size: int
    conv_width: int
    heads: int = 0
    groups: int = 1  # of heads that share their input and output maps
    step_rank: int = 0
    output_norm: bool = True
    conv_bias: bool = True
    in_bias: bool = False
    out_bias: bool = False
    state_bytes: float | None = None  # of an element of the state, where the checkpoint says it

    @property
    def conv_channels(self) -> int:
        """Channels of the short convolution: with heads also over both maps."""
        return self.channels + (2 * self.groups * self.state_size if self.heads else 0)

    @property
    def rest_elements(self) -> int:
        """Parameters of a layer that are no matrix product: convolution, decay, skip, norms."""
        convolution = (self.conv_width + self.conv_bias) * self.conv_channels
        if self.heads:
            return convolution + 3 * self.heads + (self.channels if self.output_norm else 0)
        norms = self.step_rank + 2 * self.state_size
        return convolution + self.channels * (self.state_size + 1) + norms


@dataclass(frozen=True, slots=True)
class Unquantised:
    """A matrix, by its name in analyzers/cost/linears.py, and how many layers keep it plain."""

    linear: str
    layers: int


@dataclass(frozen=True, slots=True)
class Quantization:
    """How a checkpoint's weights are stored: `method` as config.json names it."""

    method: str
    group_size: int = 128  # elements of the input dimension that share an int4 scale
    block: tuple[int, ...] = ()  # of fp8 with a scale a block: its outputs and inputs
    zeros: bool = True  # a zero point beside each scale of int4
    plain: tuple[Unquantised, ...] = ()  # what is left as it was
    activations: bool | None = None  # whether they are too; None: as the format mostly is


@dataclass(frozen=True, slots=True)
class Stored:
    """What an engine stores, by its own figures, over what the config tells.

    `weights` is of the matrices that weight formats change, `kv` of a token in the cache.
    """

    weights: float = 1.0
    kv: float = 1.0
