"""A model of Hugging Face transformers: from a checkpoint folder, or with weights by seed."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from stallscope.errors import InputError, StallscopeError
from stallscope.profiler.checked_json import Fields
from stallscope.profiler.hf_refusals import family
from stallscope.profiler.models import model_config
from stallscope.profiler.spec import ModelSpec
from stallscope.runner.dtypes import torch_dtype
from stallscope.runner.forward_watch import CACHE_NAMES
from stallscope.runner.linear import AnyLinear
from stallscope.runner.out_of_memory import out_of_memory
from stallscope.runner.weights import RandomTensors

_AUTO: Any = transformers.AutoModelForCausalLM
_ATTENTION = "sdpa"


@dataclass(frozen=True, slots=True)
class Together:
    """Linears over the same input, one after another; returns the last one's output."""

    linears: tuple[AnyLinear, ...]

    def __call__(self, x: Tensor) -> Tensor:
        for linear in self.linears:
            out = linear(x)
        return out


class HfModel:
    """A causal language model and how to call it, whatever the version of transformers."""

    def __init__(self, module: Any, spec: ModelSpec) -> None:
        self.module = module
        self.spec = spec
        self.dtype: torch.dtype = module.dtype
        self.device: torch.device = module.device
        parameters = inspect.signature(module.forward).parameters
        self._cache_name = next(name for name in CACHE_NAMES if name in parameters)

    def linears(self) -> dict[str, list[AnyLinear]]:
        """Return the linears by group, in layer order; q, k and v are three calls here."""
        layers = self.module.model.layers
        mixers, mlps = [layer.self_attn for layer in layers], [layer.mlp for layer in layers]
        return {
            "qkv": [Together((mixer.q_proj, mixer.k_proj, mixer.v_proj)) for mixer in mixers],
            "o": [mixer.o_proj for mixer in mixers],
            "gate_up": [Together((mlp.gate_proj, mlp.up_proj)) for mlp in mlps],
            "down": [mlp.down_proj for mlp in mlps],
            "lm_head": [self.module.lm_head],
        }

    def forward(
        self, token_ids: Tensor, mask: Tensor, positions: Tensor, cache: Any
    ) -> tuple[Tensor, Any]:
        """Return the logits behind each row's last token, and the cache with the new tokens."""
        output = self.module(
            input_ids=token_ids,
            attention_mask=mask,
            position_ids=positions,
            use_cache=True,
            logits_to_keep=1,
            **{self._cache_name: cache},
        )
        return output.logits[:, -1], output[self._cache_name]


@dataclass(frozen=True, slots=True)
class CacheSize:
    """The KV cache's tensors: bytes, and the tokens of all rows, padding included."""

    bytes: int
    tokens: int


def cache_size(cache: Any) -> CacheSize:
    """Measure a cache's own tensors, [rows, heads, tokens, d] in each layer."""
    rows, _, tokens, _ = cache.layers[0].keys.shape
    size = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    return CacheSize(size, rows * tokens)


def load_hf_model(
    name: str, spec: ModelSpec, *, folder: Path | None, dtype: str, device: str, seed: int
) -> HfModel:
    """Load a checkpoint folder, or build the model of a config.json with weights by seed.

    The weights of a seed are the builtin decoder's own. Nothing is fetched, no code of a
    checkpoint is run. Raises InputError where transformers refuses, AllocationFailed where memory
    is refused.
    """
    transformers.utils.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    element, place = torch_dtype(dtype), torch.device(device)
    with _refusals(name), out_of_memory("weights"):
        if folder is not None:
            module = _read(folder, element).to(place)
        else:
            module = _random(model_config(name), element, place, seed)
    return HfModel(module.eval(), spec)


def _read(folder: Path, dtype: torch.dtype) -> Any:
    if model_config(str(folder)).has("quantization_config"):
        raise InputError(
            f"{folder}: quantised checkpoints are not run yet; give one in fp32, bf16 or fp16"
        )
    module, info = _AUTO.from_pretrained(
        folder,
        dtype=dtype,
        attn_implementation=_ATTENTION,
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=True,
        output_loading_info=True,
    )
    missing = sorted(info["missing_keys"])
    if missing:
        raise InputError(
            f"{folder}: the weights lack {missing[0]} ({len(missing)} tensors in all); "
            "give weights and config of the same model"
        )
    return module


@torch.inference_mode()
def _random(fields: Fields, dtype: torch.dtype, device: torch.device, seed: int) -> Any:
    """Build without memory first: transformers' own initial weights would be thrown away."""
    kind = family(fields)
    config = type(transformers.AutoConfig.for_model(kind)).from_dict(dict(fields.values))
    with torch.device("meta"):
        module = _AUTO.from_config(
            config, dtype=dtype, attn_implementation=_ATTENTION, trust_remote_code=False
        )
    module = module.to_empty(device=device)
    module.tie_weights()  # a tied head would have become a tensor of its own
    source = RandomTensors(seed, dtype, device)
    for name, parameter in module.named_parameters():
        parameter.copy_(source.get(name, tuple(parameter.shape)))
    rotary = module.model.rotary_emb  # its frequencies are computed, not loaded
    with device:
        module.model.rotary_emb = type(rotary)(config)
    return module


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    """Say in one line what transformers says in many."""
    try:
        yield
    except StallscopeError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines()
        said = lines[0] if lines else type(error).__name__
        raise InputError(f"{name}: transformers cannot load it: {said}") from error
