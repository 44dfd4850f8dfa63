"""What a model and a device are, in the numbers that the arithmetic needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from stallscope.profiler.model_parts import (
    Experts,
    Latent,
    LinearAttention,
    Quantization,
    StateSpace,
    Stored,
)

# Bytes per element. Scaled formats carry scales besides: see analyzers/cost/arithmetic.py.
DTYPE_BYTES: Mapping[str, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.5,
    "mxfp4": 0.5,
    "nvfp4": 0.5,
}


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """The llama-3 scaling of rotary frequencies (`rope_type` "llama3"), or plain "linear"."""

    kind: Literal["llama3", "linear"]
    factor: float
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position: int = 8192


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A decoder-only transformer; sizes in elements. Unless it says more: gated MLP, RMSNorm.

    `sliding_window` is of all layers. Where only some have one they are the `local_layers`, with
    `local_window`, and `sliding_window` is None.
    """

    name: str
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    max_position: int
    tied_embeddings: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False  # RMSNorm over each query and key head, before the rotation
    sliding_window: int | None = None  # a token attends to itself and the window - 1 before it
    rope_theta: float = 10_000.0
    rope_scaling: RopeScaling | None = None
    rms_norm_eps: float = 1e-5
    dtype: str | None = None  # the checkpoint's own, as config.json says
    eos_token_ids: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()  # what the config asks for and the arithmetic leaves out
    local_layers: int = 0
    local_window: int | None = None
    latent: Latent | None = None
    mixture: Experts | None = None
    linear_attention: LinearAttention | None = None
    gated_queries: bool = False  # q_proj also makes a gate of the attention's output
    attention_sinks: bool = False  # a learnt logit for each head
    o_bias: bool = False
    mlp_bias: bool = False
    mlp_gated: bool = True
    head_bias: bool = False
    layer_norms: int = 2  # norms over the hidden size in each layer
    norm_bias: bool = False  # LayerNorm, not RMSNorm
    quantization: Quantization | None = None
    not_runnable: str | None = None  # what our runner does not execute; None: it runs
    state_space: StateSpace | None = None
    attention_in: int | None = None  # layers with attention, where it is not all but the linear
    mlp_in: int | None = None  # layers with an MLP or experts, where it is not all
    draft_layers: int = 0  # that draft tokens, in the checkpoint besides num_layers
    joins_hidden: bool = False  # a draft layer: it joins a token with the model's hidden state
    stored: Stored = Stored()

    @property
    def attention_layers(self) -> int:
        """Layers whose cache grows with the context."""
        linear = self.linear_attention
        others = self.num_layers - (0 if linear is None else linear.layers)
        return others if self.attention_in is None else self.attention_in

    @property
    def mlp_layers(self) -> int:
        """Layers with an MLP or experts."""
        return self.num_layers if self.mlp_in is None else self.mlp_in

    @property
    def has_state(self) -> bool:
        """Whether some layers keep a state of one size instead of a cache, or beside it."""
        return self.linear_attention is not None or self.state_space is not None

    @property
    def blocks(self) -> int:
        """Attentions, recurrent layers and MLPs; ranks sum what each of them makes."""
        linear, states = self.linear_attention, self.state_space
        recurrent = (0 if linear is None else linear.layers) + (states.layers if states else 0)
        return self.attention_layers + recurrent + self.mlp_layers


def keys_read(start: int, tokens: int, window: int | None) -> int:
    """Count the cache entries that `tokens` new tokens after `start` earlier ones attend to."""
    return start + tokens if window is None else min(start, window - 1) + tokens


def attention_pairs(start: int, tokens: int, window: int | None) -> int:
    """Count their (new token, attended key) pairs: the token at p attends to min(p + 1, window)."""
    stop = start + tokens
    if window is None or stop <= window:
        return tokens * start + tokens * (tokens + 1) // 2
    growing = max(0, window - start)  # these tokens still see everything before them
    return attention_pairs(start, growing, None) + (tokens - growing) * window


@dataclass(frozen=True, slots=True)
class ProductTime:
    """Measured seconds of one product of `rows` rows with one of several matrices in turn.

    `weight_bytes` is what the matrices take together, as a model's do: where that is less than a
    cache holds, they come from there. 0 where a file does not say.
    """

    dtype: str
    inputs: int
    outputs: int
    rows: int
    time_s: float
    weight_bytes: int = 0


CALIBRATION_FORM = 1  # raised whenever factors come to mean something else


@dataclass(frozen=True, slots=True)
class Calibration:
    """What measured steps taught about a device and an engine; see analyzers/cost/step_fit.py.

    On a machine whose products were measured, four factors; on one of a datasheet, the seconds that
    the engine's host adds to a step and for each request in it. `error` is the mean relative miss
    on what was left out of the fit, or, where that is too little (`is_tested`), the fit's own.
    """

    at: str  # a date
    engine: str
    captures: int
    steps: int
    error: float
    products: float = 1.0
    attention: float = 1.0
    rows: float = 1.0
    launch: float = 1.0
    step_s: float | None = None
    request_s: float | None = None
    sizes: int | None = None  # batch sizes among the steps, where the host's part was fitted
    runs: tuple[str, ...] = ()  # marks of the runs it was fitted on; see analyzers/cost/run_mark.py
    form: int = CALIBRATION_FORM
    recorded: int | None = None  # steps of the runs, of which the usual ones were fitted

    @property
    def is_tested(self) -> bool:
        """Whether `error` is of runs, or batch sizes, that were left out: of three or more."""
        return (self.captures if self.step_s is None else self.sizes or 0) >= 3


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A device's limits. `peak_flops` are dense, by dtype, in FLOP/s; bandwidths in bytes/s.

    `kind` "datasheet" is the vendor's figure; "achievable" was measured on the machine itself.
    """

    name: str
    peak_flops: Mapping[str, float]
    memory_bytes: int | None
    memory_bytes_per_s: float
    kind: Literal["datasheet", "achievable"] = "datasheet"
    is_cpu: bool = False
    link: str | None = None  # "nvlink", "pcie4", …: towards other devices
    link_bytes_per_s: float | None = None  # one direction
    power_w: float | None = None
    host_link_bytes_per_s: float | None = None  # one direction; where `link` is not the host's own
    sources: Mapping[str, str] = field(default_factory=dict)  # field → where its figure is from
    products: tuple[ProductTime, ...] = ()  # by shape class, where they were measured
    launch_s: float | None = None  # that one small operator costs, as measured
    calibration: Calibration | None = None

    @property
    def to_host_bytes_per_s(self) -> float | None:
        """Bytes per second from the host, one direction; None where it is not known."""
        if self.host_link_bytes_per_s is None and (self.link or "").startswith("pcie"):
            return self.link_bytes_per_s
        return self.host_link_bytes_per_s


@dataclass(frozen=True, slots=True)
class Subject:
    """What was observed: model, device and the engine's settings; None is unknown."""

    model: ModelSpec | None = None
    device: DeviceSpec | None = None
    num_devices: int = 1
    dtype: str | None = None
    kv_dtype: str | None = None
    engine: str | None = None
    workload: str | None = None  # one line for people
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    chunked_prefill: bool | None = None
    static_batching: bool | None = None  # a batch takes nobody in until its last request ends
    kv_budget_bytes: int | None = None
    block_size: int | None = None  # tokens per KV block
    concurrency: int | None = None  # clients offered in a closed loop
    rate_per_s: float | None = None  # requests offered per second in an open loop
    cpu_offload_bytes: int | None = None  # of weights, on each device, that lie in host memory
    isolated_phases: bool = False  # phases repeated in stretches of their own: no served load


CALM_CORES = 0.10  # taken by others: more, and the figures are lower than the machine's own
CALM_CHANGE = 0.15  # of the bandwidth from the probe's start to its end


@dataclass(frozen=True, slots=True)
class MachineReading:
    """A device as measured in `seconds`.

    `other_cores` is what everything else kept busy, None where the system does not tell;
    `stream_change` the bandwidth's change from the first reading to the last.
    """

    device: DeviceSpec
    seconds: float
    other_cores: float | None
    stream_change: float

    @property
    def is_disturbed(self) -> bool:
        """Whether others took enough of the machine to show."""
        taken = self.other_cores is not None and self.other_cores > CALM_CORES
        return taken or abs(self.stream_change) > CALM_CHANGE
