"""Where a decoder's tensors come from: a seed, or a folder of safetensors files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from stallscope.errors import InputError
from stallscope.profiler.spec import ModelSpec

Shape = tuple[int, ...]

EMBEDDING = "model.embed_tokens.weight"
FINAL_NORM = "model.norm.weight"
LM_HEAD = "lm_head.weight"

# In checkpoints of some models or versions, and computed or tied here.
_REDUNDANT = ("rotary_emb.inv_freq", LM_HEAD)


class TensorSource(Protocol):
    """Gives each tensor of a model once, by its checkpoint name."""

    def get(self, name: str, shape: Shape) -> Tensor: ...


def tensor_shapes(spec: ModelSpec) -> dict[str, Shape]:
    """Return the shape of every tensor of a model by its checkpoint name."""
    shapes: dict[str, Shape] = {EMBEDDING: (spec.vocab_size, spec.hidden_size)}
    for layer in range(spec.num_layers):
        for name, shape in layer_shapes(spec).items():
            shapes[f"model.layers.{layer}.{name}"] = shape
    shapes[FINAL_NORM] = (spec.hidden_size,)
    if not spec.tied_embeddings:
        shapes[LM_HEAD] = (spec.vocab_size, spec.hidden_size)
    return shapes


def layer_shapes(spec: ModelSpec) -> dict[str, Shape]:
    """Return the shape of every tensor of one layer by its name within the layer."""
    hidden, inner = spec.hidden_size, spec.intermediate_size
    queries, keys = spec.num_heads * spec.head_dim, spec.num_kv_heads * spec.head_dim
    shapes: dict[str, Shape] = {
        "input_layernorm.weight": (hidden,),
        "self_attn.q_proj.weight": (queries, hidden),
        "self_attn.k_proj.weight": (keys, hidden),
        "self_attn.v_proj.weight": (keys, hidden),
        "self_attn.o_proj.weight": (hidden, queries),
        "post_attention_layernorm.weight": (hidden,),
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
    }
    if spec.qk_norm:
        for letter in "qk":
            shapes[f"self_attn.{letter}_norm.weight"] = (spec.head_dim,)
    if spec.qkv_bias:
        for letter, size in (("q", queries), ("k", keys), ("v", keys)):
            shapes[f"self_attn.{letter}_proj.bias"] = (size,)
    return shapes


class RandomTensors:
    """Tensors drawn from a seed, scaled so that activations keep their size from layer to layer.

    Each depends on its own name and the seed alone, so that engines which ask in different orders
    get the same model.
    """

    def __init__(self, seed: int, dtype: torch.dtype, device: torch.device) -> None:
        self._seed = seed
        self._dtype = dtype
        self._device = device

    def get(self, name: str, shape: Shape) -> Tensor:
        """Draw a tensor: norms are ones, biases small, matrices of variance 1 / inputs."""
        new = torch.empty(shape, dtype=self._dtype, device=self._device)
        if name.endswith("norm.weight"):
            return new.fill_(1.0)
        deviation = 0.1 if len(shape) == 1 else shape[-1] ** -0.5
        digest = hashlib.sha256(f"{self._seed} {name}".encode()).digest()
        generator = torch.Generator(self._device).manual_seed(int.from_bytes(digest[:4], "big"))
        return new.normal_(0.0, deviation, generator=generator)


class SafetensorsFolder:
    """A folder with model.safetensors, or with shards and their model.safetensors.index.json.

    Its names and shapes are held against the model's before anything is read.
    """

    def __init__(
        self, folder: Path, spec: ModelSpec, dtype: torch.dtype, device: torch.device
    ) -> None:
        self._dtype = dtype
        self._device = device
        found: dict[str, Shape] = {}
        self._file_of: dict[str, Path] = {}
        for file in _files(folder):
            for name, shape in _header(file).items():
                found[name] = shape
                self._file_of[name] = file
        _check(folder, found, tensor_shapes(spec))

    def get(self, name: str, shape: Shape) -> Tensor:
        """Read one tensor into memory of its own, in this source's type and on its device."""
        with safe_open(self._file_of[name], framework="pt") as file:
            new = torch.empty(shape, dtype=self._dtype, device=self._device)
            return new.copy_(file.get_tensor(name))


def _files(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return [folder / "model.safetensors"]
    try:
        names = set(json.loads(index.read_text())["weight_map"].values())
        return [folder / name for name in sorted(names)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{index}: not an index of safetensors shards ({error}); fetch it again"
        ) from error


def _header(path: Path) -> dict[str, Shape]:
    if not path.is_file():
        raise InputError(f"{path}: no such file; give a folder that holds the whole checkpoint")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: not a safetensors file ({error}); fetch it again") from error


def _check(folder: Path, found: Mapping[str, Shape], expected: Mapping[str, Shape]) -> None:
    extra = [n for n in found if n not in expected and not n.endswith(_REDUNDANT)]
    shapes = [
        f"{name} is {found[name]} instead of {shape}"
        for name, shape in expected.items()
        if name in found and found[name] != shape
    ]
    faults = (
        _listed("missing", [name for name in expected if name not in found]),
        _listed("unknown", extra),
        _listed("misshaped", shapes),
    )
    if any(faults):
        raise InputError(
            f"{folder}: the weights do not fit its config.json: "
            f"{'; '.join(filter(None, faults))}; give weights and config of the same model"
        )


def _listed(title: str, names: Iterable[str]) -> str:
    """Return "title: a, b, c and 4 more", or nothing for no names."""
    names = list(names)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{title}: {', '.join(names[:3])}{more}" if names else ""
