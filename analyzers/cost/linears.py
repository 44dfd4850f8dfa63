"""Every matrix of a model that tokens are multiplied with: its shape, how often it is there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stallscope.profiler.model_parts import Experts, Latent, LinearAttention
from stallscope.profiler.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Linear:
    """A matrix of `inputs` × `outputs` that `layers` layers have, each in `copies` (experts).

    A token passes `active` of the copies. `group` names what an engine runs as one product.
    `is_quantised` where weight-only formats change it; `is_shared` where tensor-parallel ranks
    split it, rather than each hold all of it.
    """

    name: str
    group: str
    inputs: int
    outputs: int
    layers: int
    copies: int = 1
    active: int = 1
    has_bias: bool = False
    is_quantised: bool = True
    is_shared: bool = True

    @property
    def elements(self) -> int:
        """Elements of all copies in all layers, biases left out."""
        return self.layers * self.copies * self.inputs * self.outputs

    @property
    def bias_elements(self) -> int:
        """Elements of all their biases."""
        return self.layers * self.copies * self.outputs if self.has_bias else 0

    def copies_read(self, rows: int) -> float:
        """Return how many of a layer's copies `rows` tokens touch, each choosing at random."""
        if self.copies == 1:
            return 1.0
        return self.copies * (1.0 - (1.0 - self.active / self.copies) ** rows)


def model_linears(spec: ModelSpec) -> tuple[Linear, ...]:
    """List a model's linears in the order in which a layer runs them; the LM head last."""
    return (*attention_inputs(spec), *attention_outputs(spec), *mlp_linears(spec), lm_head(spec))


def attention_inputs(spec: ModelSpec) -> tuple[Linear, ...]:
    """List the linears before the attention: what makes queries, keys and values."""
    made = _latent(spec, spec.latent) if spec.latent is not None else _heads(spec)
    joined = (_joined(spec),) if spec.joins_hidden else ()
    recurrent = (*_delta_inputs(spec, spec.linear_attention), *_state_inputs(spec))
    return (*joined, *(made if spec.attention_layers else ()), *recurrent)


def _joined(spec: ModelSpec) -> Linear:
    """A draft layer's first product: of a token's embedding and the model's hidden state."""
    return Linear("draft_in", "draft_in", 2 * spec.hidden_size, spec.hidden_size, spec.num_layers)


def attention_outputs(spec: ModelSpec) -> tuple[Linear, ...]:
    """List the linears right after the attention."""
    head = spec.head_dim if spec.latent is None else spec.latent.value_dim
    layers, width = spec.attention_layers, spec.num_heads * head
    output = Linear("o_proj", "o", width, spec.hidden_size, layers, has_bias=spec.o_bias)
    found = [output] if layers else []
    linear, states = spec.linear_attention, spec.state_space
    if linear is not None:
        values = linear.value_heads * linear.value_dim
        found.append(Linear("delta_out", "delta_out", values, spec.hidden_size, linear.layers))
    if states is not None:
        sizes = (states.channels, spec.hidden_size, states.layers)
        found.append(Linear("state_out", "state_out", *sizes, has_bias=states.out_bias))
    return tuple(found)


def mlp_linears(spec: ModelSpec) -> tuple[Linear, ...]:
    """List the linears of the plain layers' MLP, then those of the layers with experts."""
    experts = spec.mixture
    plain = spec.mlp_layers - (0 if experts is None else experts.layers)
    found = list(_mlp(spec, "", spec.intermediate_size, plain)) if plain else []
    return (*found, *(_mixture(spec, experts) if experts is not None else ()))


def lm_head(spec: ModelSpec) -> Linear:
    """Return the LM head; weight-only formats leave it as it is."""
    return Linear(
        *("lm_head", "lm_head", spec.hidden_size, spec.vocab_size, 1),
        has_bias=spec.head_bias,
        is_quantised=False,
    )


def _heads(spec: ModelSpec) -> Iterator[Linear]:
    query = spec.num_heads * spec.head_dim * (2 if spec.gated_queries else 1)
    keys = spec.num_kv_heads * spec.head_dim
    for name, outputs in (("q_proj", query), ("k_proj", keys), ("v_proj", keys)):
        layers, bias = spec.attention_layers, spec.qkv_bias
        yield Linear(name, "qkv", spec.hidden_size, outputs, layers, has_bias=bias)


def _latent(spec: ModelSpec, latent: Latent) -> Iterator[Linear]:
    """Queries and the latent by way of low ranks; engines keep the narrow matrices on each rank."""
    hidden, layers, heads, bias = spec.hidden_size, spec.num_layers, spec.num_heads, spec.qkv_bias
    query = heads * (latent.nope_dim + latent.rope_dim)
    if latent.query_rank is None:
        yield Linear("q_proj", "qkv", hidden, query, layers)
    else:
        rank = latent.query_rank
        yield Linear("q_a_proj", "qkv", hidden, rank, layers, has_bias=bias, is_shared=False)
        yield Linear("q_b_proj", "q_b", rank, query, layers)
    cached, made = latent.cached_elements, heads * (latent.nope_dim + latent.value_dim)
    yield Linear("kv_a_proj", "qkv", hidden, cached, layers, has_bias=bias, is_shared=False)
    yield Linear("kv_b_proj", "kv_b", latent.kv_rank, made, layers)


def _delta_inputs(spec: ModelSpec, linear: LinearAttention | None) -> Iterator[Linear]:
    if linear is None:
        return
    hidden, layers = spec.hidden_size, linear.layers
    made = linear.conv_channels + linear.value_heads * linear.value_dim  # and the output's gate
    yield Linear("delta_qkvz", "delta_in", hidden, made, layers)
    yield Linear("delta_ba", "delta_in", hidden, 2 * linear.value_heads, layers)


def _state_inputs(spec: ModelSpec) -> Iterator[Linear]:
    """What makes a state's inputs, maps and step sizes: in one product, or by way of a low rank."""
    states = spec.state_space
    if states is None:
        return
    hidden, layers, channels = spec.hidden_size, states.layers, states.channels
    made = channels + states.conv_channels + states.heads  # the first are the output's gate
    yield Linear("state_in", "state_in", hidden, made, layers, has_bias=states.in_bias)
    if not states.heads:
        rank = states.step_rank
        yield Linear("state_maps", "state_maps", channels, rank + 2 * states.state_size, layers)
        yield Linear("state_steps", "state_steps", rank, channels, layers, has_bias=True)


def _mlp(spec: ModelSpec, prefix: str, size: int, layers: int) -> Iterator[Linear]:
    hidden, bias = spec.hidden_size, spec.mlp_bias
    for name in ("gate_proj", "up_proj") if spec.mlp_gated else ("up_proj",):
        group = f"{prefix}gate_up"
        yield Linear(prefix + name, group, hidden, size, layers, has_bias=bias)
    yield Linear(f"{prefix}down_proj", f"{prefix}down", size, hidden, layers, has_bias=bias)


def _mixture(spec: ModelSpec, experts: Experts) -> Iterator[Linear]:
    hidden, layers, size = spec.hidden_size, experts.layers, experts.intermediate_size
    # Engines keep routers whole on each rank, in 16 bit.
    yield Linear(
        *("router", "router", hidden, experts.count, layers),
        has_bias=experts.bias,
        is_quantised=False,
        is_shared=False,
    )
    width = experts.width or hidden
    if experts.width is not None:
        yield Linear("latent_down", "latent", hidden, width, layers, has_bias=spec.mlp_bias)
    made = ("expert_gate_proj", "expert_up_proj") if spec.mlp_gated else ("expert_up_proj",)
    for name, group, inputs, outputs in (
        *((name, "expert_gate_up", width, size) for name in made),
        ("expert_down_proj", "expert_down", size, width),
    ):
        copies = (experts.count, experts.per_token)
        yield Linear(name, group, inputs, outputs, layers, *copies, has_bias=experts.bias)
    if experts.width is not None:
        yield Linear("latent_up", "latent_up", width, hidden, layers, has_bias=spec.mlp_bias)
    if experts.shared_size:
        yield from _mlp(spec, "shared_", experts.shared_size, layers)
    if experts.shared_gate:
        yield Linear(
            *("shared_gate", "router", hidden, 1, layers), is_quantised=False, is_shared=False
        )
