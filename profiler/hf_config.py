"""A model's shape from a Hugging Face config.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stallscope.profiler.checked_json import Fields
from stallscope.profiler.hf_families import (
    DEEPSEEK,
    has_head_norms,
    has_o_bias,
    has_qkv_bias,
    language_model,
    layer_norms,
    with_defaults,
)
from stallscope.profiler.hf_hybrids import layer_kinds, state_space, with_layer_count
from stallscope.profiler.hf_parts import draft_layers, experts, latent, linear_attention
from stallscope.profiler.hf_quantization import stored
from stallscope.profiler.hf_refusals import family, not_runnable
from stallscope.profiler.hf_rope import rope_scaling, rope_theta
from stallscope.profiler.hf_unquantised import unquantised
from stallscope.profiler.hf_warnings import config_warnings
from stallscope.profiler.hf_window import windows
from stallscope.profiler.spec import ModelSpec

_DTYPES: Mapping[str, str] = {
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "int8": "int8",
}


def model_from_config(config: Fields, name: str) -> ModelSpec:
    """Return the model that a config.json describes.

    Raises InputError for a field that is missing or makes no sense, and NotModelled for a model
    whose arithmetic is not modelled. What is tolerated and left out is named in `warnings`.
    """
    config = language_model(config)
    kind = family(config)
    config = with_layer_count(with_defaults(config, kind))
    heads = config.size("num_attention_heads")
    dtype, dtype_warnings = _dtype(config)
    stored_as = stored(config)
    quantised = None
    if stored_as is not None:
        quantised = replace(stored_as[0], plain=unquantised(config, kind))
    window = windows(config, kind)
    kinds = layer_kinds(config, kind)
    return ModelSpec(
        name=name,
        hidden_size=config.size("hidden_size"),
        intermediate_size=_mlp_size(config, kind),
        num_layers=config.size("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=heads if kind in DEEPSEEK else _kv_heads(config, heads),
        head_dim=_head_dim(config, kind, heads),
        vocab_size=config.size("vocab_size"),
        max_position=config.size("max_position_embeddings"),
        tied_embeddings=config.flag("tie_word_embeddings"),
        qkv_bias=has_qkv_bias(config, kind),
        qk_norm=has_head_norms(config, kind),
        sliding_window=window.of_all,
        rope_theta=rope_theta(config),
        rope_scaling=rope_scaling(config),
        rms_norm_eps=config.positive_or("rms_norm_eps", 1e-6),  # transformers' own default
        dtype=dtype if stored_as is None else stored_as[1],
        eos_token_ids=_eos_token_ids(config),
        warnings=(*config_warnings(config, kind), *dtype_warnings),
        local_layers=window.local_layers,
        local_window=window.local,
        latent=latent(config, kind),
        mixture=experts(config, kind),
        linear_attention=linear_attention(config, kind),
        gated_queries=kind == "qwen3_next",
        attention_sinks=kind == "gpt_oss",
        o_bias=has_o_bias(config, kind),
        mlp_bias=kind == "phi" or config.flag("mlp_bias"),
        mlp_gated=kind not in ("phi", "nemotron_h"),
        head_bias=kind == "phi" or config.flag("lm_head_bias"),
        layer_norms=layer_norms(kind),
        norm_bias=kind in ("phi", "phimoe"),
        quantization=quantised,
        not_runnable=not_runnable(kind, window.local_layers),
        state_space=state_space(config, kind),
        attention_in=sum(k in ("attention", "both") for k in kinds) if kinds else None,
        mlp_in=sum(k in ("mlp", "moe") for k in kinds) if kind == "nemotron_h" else None,
        draft_layers=draft_layers(config, kind),
    )


def _mlp_size(config: Fields, family: str) -> int:
    """Granite's plain MLP is the one that all tokens share, experts or not."""
    is_granite = family == "granitemoehybrid"
    return config.size("shared_intermediate_size" if is_granite else "intermediate_size")


def _kv_heads(config: Fields, heads: int) -> int:
    kv_heads = config.size_or("num_key_value_heads", heads)
    if heads % kv_heads:
        raise config.error(
            "num_attention_heads", f"{heads} is not a multiple of num_key_value_heads {kv_heads}"
        )
    return kv_heads


def _head_dim(config: Fields, family: str, heads: int) -> int:
    hidden = config.size("hidden_size")
    if family in DEEPSEEK:
        return config.size("qk_nope_head_dim") + config.size("qk_rope_head_dim")
    if family == "qwen3" and not config.has("head_dim"):
        return 128  # transformers' own default, whatever the hidden size
    if not config.has("head_dim") and hidden % heads:
        raise config.error(
            "hidden_size",
            f"{hidden} is not a multiple of num_attention_heads {heads}; add head_dim",
        )
    head_dim = config.size_or("head_dim", hidden // heads)
    if head_dim % 2:
        raise config.error("head_dim", f"{head_dim} is odd; rotary positions need pairs")
    return head_dim


def _dtype(config: Fields) -> tuple[str | None, tuple[str, ...]]:
    field = "dtype" if config.has("dtype") else "torch_dtype"
    name = config.text(field)
    if name is None or config.has("quantization_config"):  # then it is the dtype computed in
        return None, ()
    dtype = _DTYPES.get(name.removeprefix("torch."))
    if dtype is None:
        return None, (f"{field} {name} is not known: say the dtype yourself",)
    return dtype, ()


def _eos_token_ids(config: Fields) -> tuple[int, ...]:
    value = config.get("eos_token_id")
    if value is None:
        return ()
    ids = value if isinstance(value, list) else [value]
    if any(isinstance(id_, bool) or not isinstance(id_, int) or id_ < 0 for id_ in ids):
        raise config.error("eos_token_id", "must be a token id or a list of them")
    return tuple(ids)
