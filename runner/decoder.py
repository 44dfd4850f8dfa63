"""A LLaMA-shaped decoder: RMSNorm, rotary positions, grouped-query attention, gated MLP.

Queries and keys may be normed head by head, and attention may be within a sliding window.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from stallscope.profiler.spec import ModelSpec
from stallscope.runner.attention import attend
from stallscope.runner.dtypes import torch_dtype
from stallscope.runner.linear import Kernel, LinearOp, linear
from stallscope.runner.linear_choice import fastest_kernel
from stallscope.runner.norm import rms_norm
from stallscope.runner.out_of_memory import out_of_memory
from stallscope.runner.ragged import RaggedBatch
from stallscope.runner.rope import inverse_frequencies, rotate, rotation
from stallscope.runner.weights import (
    EMBEDDING,
    FINAL_NORM,
    LM_HEAD,
    RandomTensors,
    SafetensorsFolder,
    TensorSource,
    layer_shapes,
)


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer; Q, K and V are one linear, and so are gate and up: fewer and larger products."""

    attention_norm: Tensor
    qkv: LinearOp
    qk_norm: Tensor | None  # [heads + KV heads, head_dim]
    o: LinearOp
    mlp_norm: Tensor
    gate_up: LinearOp
    down: LinearOp


def build_decoder(
    spec: ModelSpec,
    *,
    dtype: str = "fp32",
    device: str = "cpu",
    folder: Path | None = None,
    seed: int = 0,
) -> Decoder:
    """Build a decoder from a folder of safetensors, or with random weights by seed.

    Raises InputError for weights that do not fit, AllocationFailed where memory is refused.
    """
    element, place = torch_dtype(dtype), torch.device(device)
    with out_of_memory("weights"):
        source: TensorSource = (
            RandomTensors(seed, element, place)
            if folder is None
            else SafetensorsFolder(folder, spec, element, place)
        )
        return Decoder(spec, source, kernel=fastest_kernel(element, place))


class Decoder:
    """The model; its keys and values live in the pool that a batch refers to."""

    @torch.inference_mode()
    def __init__(self, spec: ModelSpec, source: TensorSource, *, kernel: Kernel) -> None:
        self.spec = spec
        self.kernel = kernel
        hidden = (spec.hidden_size,)
        table = (spec.vocab_size, spec.hidden_size)
        self._embedding = source.get(EMBEDDING, table)
        self.dtype = self._embedding.dtype
        self.device = self._embedding.device
        self._layers = tuple(_layer(spec, source, i, kernel) for i in range(spec.num_layers))
        self._norm = source.get(FINAL_NORM, hidden)
        head = self._embedding if spec.tied_embeddings else source.get(LM_HEAD, table)
        self._lm_head = linear(head, kernel=kernel, pack=not spec.tied_embeddings)
        self._frequencies = inverse_frequencies(spec).to(self.device)

    def linears(self) -> dict[str, list[LinearOp]]:
        """Return the linears by group, in layer order, as the forward pass calls them."""
        return {
            "qkv": [layer.qkv for layer in self._layers],
            "o": [layer.o for layer in self._layers],
            "gate_up": [layer.gate_up for layer in self._layers],
            "down": [layer.down for layer in self._layers],
            "lm_head": [self._lm_head],
        }

    @torch.inference_mode()
    def forward(self, batch: RaggedBatch) -> Tensor:
        """Append the batch's keys and values; return logits [sampling rows, vocabulary]."""
        hidden = F.embedding(batch.token_ids, self._embedding)
        turn = rotation(batch.positions, self._frequencies, self.dtype)
        for index, layer in enumerate(self._layers):
            x = self._rms_norm(hidden, layer.attention_norm)
            mixed = self._attention(index, layer, x, turn=turn, batch=batch)
            layer.o.add_to(hidden, mixed)
            gate, up = layer.gate_up(self._rms_norm(hidden, layer.mlp_norm)).chunk(2, dim=-1)
            layer.down.add_to(hidden, F.silu(gate).mul_(up))
        sampling = hidden if batch.sample_rows is None else hidden[batch.sample_rows]
        return self._lm_head(self._rms_norm(sampling, self._norm))

    def _rms_norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return rms_norm(x, weight, self.spec.rms_norm_eps)

    def _attention(
        self,
        index: int,
        layer: Layer,
        x: Tensor,
        *,
        turn: tuple[Tensor, Tensor],
        batch: RaggedBatch,
    ) -> Tensor:
        spec = self.spec
        heads = layer.qkv(x).view(x.shape[0], -1, spec.head_dim)
        queries_and_keys = heads[:, : spec.num_heads + spec.num_kv_heads]
        if layer.qk_norm is not None:
            normed = F.rms_norm(queries_and_keys, (spec.head_dim,), eps=spec.rms_norm_eps)
            queries_and_keys = normed.mul_(layer.qk_norm)
        turned = rotate(queries_and_keys, *turn)
        queries, keys = turned[:, : spec.num_heads], turned[:, spec.num_heads :]
        values = heads[:, spec.num_heads + spec.num_kv_heads :]
        batch.pool.write(index, batch.slots, keys, values)
        mixed = [
            attend(queries[piece.first : piece.last], *piece.cache.layer(index), piece.mask)
            for piece in batch.pieces
        ]
        return (mixed[0] if len(mixed) == 1 else torch.cat(mixed)).to(self.dtype)


def _layer(spec: ModelSpec, source: TensorSource, index: int, kernel: Kernel) -> Layer:
    shapes = layer_shapes(spec)

    def get(name: str) -> Tensor:
        return source.get(f"model.layers.{index}.{name}", shapes[name])

    def fused(*names: str) -> Tensor:
        return torch.cat([get(name) for name in names])

    qkv = [f"self_attn.{letter}_proj" for letter in "qkv"]
    bias = fused(*(f"{name}.bias" for name in qkv)) if spec.qkv_bias else None
    qk_norm = (
        torch.cat(
            (
                get("self_attn.q_norm.weight").expand(spec.num_heads, -1),
                get("self_attn.k_norm.weight").expand(spec.num_kv_heads, -1),
            )
        )
        if spec.qk_norm
        else None
    )
    gate_up = fused("mlp.gate_proj.weight", "mlp.up_proj.weight")
    return Layer(
        attention_norm=get("input_layernorm.weight"),
        qkv=linear(fused(*(f"{name}.weight" for name in qkv)), bias, kernel=kernel),
        qk_norm=qk_norm,
        o=linear(get("self_attn.o_proj.weight"), kernel=kernel),
        mlp_norm=get("post_attention_layernorm.weight"),
        gate_up=linear(gate_up, kernel=kernel),
        down=linear(get("mlp.down_proj.weight"), kernel=kernel),
    )
