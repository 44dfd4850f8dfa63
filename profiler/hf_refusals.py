"""Models whose arithmetic we cannot do yet, refused by the name of what is in the way."""

from __future__ import annotations

from stallscope.errors import NotModelled
from stallscope.profiler.checked_json import Fields
from stallscope.profiler.hf_families import FAMILIES, RUNNABLE, named_family

_EXPERTS = "mixture of experts"
_LATENT = "multi-head latent attention"
_RECURRENT = "linear attention or a state-space layer"
_ENCODER = "an encoder-decoder"
_UNGATED = "an MLP without a gate"
_MULTIMODAL = "a model of more than text"
_SOFT_CAPPED = "soft-capped logits"
_OTHER_NORMS = "norms that add one to their weight"
_SINKS = "attention sinks"
_LAYER_NORM = "LayerNorm and an MLP without a gate"
_FUSED = "fused projections"

# What a family that is modelled has beyond what the runner executes; the first is named to users.
_HAS: dict[str, tuple[str, ...]] = {
    "mixtral": (_EXPERTS,),
    "qwen2_moe": (_EXPERTS,),
    "qwen3_moe": (_EXPERTS,),
    "qwen3_next": (_RECURRENT, _EXPERTS),
    "deepseek_v2": (_LATENT, _EXPERTS),
    "deepseek_v3": (_LATENT, _EXPERTS),
    "gemma": (_OTHER_NORMS,),
    "gemma2": (_SOFT_CAPPED,),
    "gemma3_text": (_OTHER_NORMS, _SOFT_CAPPED, _MULTIMODAL),
    "gpt_oss": (_EXPERTS, _SINKS),
    "phi": (_LAYER_NORM,),
    "phi3": (_FUSED,),
    "phimoe": (_EXPERTS,),
    "glm4_moe": (_EXPERTS,),
    "bamba": (_RECURRENT,),
    "falcon_h1": (_RECURRENT,),
    "granitemoehybrid": (_RECURRENT, _EXPERTS),
    "jamba": (_RECURRENT, _EXPERTS),
    "nemotron_h": (_RECURRENT, _EXPERTS),
}

# A field that is given and not null, false or 0 means the model has the thing.
TELLING_FIELDS = {
    "num_local_experts": _EXPERTS,
    "num_experts": _EXPERTS,
    "n_routed_experts": _EXPERTS,
    "moe_num_experts": _EXPERTS,
    "moe_intermediate_size": _EXPERTS,
    "kv_lora_rank": _LATENT,
    "ssm_cfg": _RECURRENT,
    "state_size": _RECURRENT,
    "ssm_state_size": _RECURRENT,
    "mamba_d_state": _RECURRENT,
    "linear_num_value_heads": _RECURRENT,
    "linear_conv_kernel_dim": _RECURRENT,
    "rwkv_version": _RECURRENT,
    "is_encoder_decoder": _ENCODER,
    "add_cross_attention": _ENCODER,
    "encoder_layers": _ENCODER,
    "text_config": _MULTIMODAL,
    "vision_config": _MULTIMODAL,
    "audio_config": _MULTIMODAL,
    "attn_logit_softcapping": _SOFT_CAPPED,
    "final_logit_softcapping": _SOFT_CAPPED,
}

_TELLING_TYPES = {
    _RECURRENT: (
        *("mamba", "mamba2", "falcon_mamba", "rwkv", "recurrent_gemma", "zamba", "zamba2"),
        *("lfm2", "lfm2_moe", "kimi_linear", "minimax", "olmo_hybrid", "plamo2", "phi4flash"),
        *("qwen3_5", "qwen3_5_moe", "qwen3_5_text", "qwen3_5_moe_text", "bailing_moe_linear"),
    ),
    _ENCODER: ("t5", "mt5", "bart", "mbart", "pegasus", "whisper"),
    _UNGATED: (
        *("gpt2", "gptj", "gpt_neo", "gpt_neox", "gpt_bigcode", "opt", "bloom", "mpt"),
        *("falcon", "starcoder2", "nemotron"),
    ),
}


# What the layers of models with recurrent ones are called besides.
HYBRID_LAYERS = ("attention", "hybrid", "mlp", "moe")


def family(config: Fields) -> str:
    """Return one of FAMILIES; raise NotModelled for a model of another kind."""
    name = named_family(config)
    has = _HAS.get(name, ())
    _refuse_by_field(config, has)
    _refuse_by_layer_types(config, has)
    for what, types in _TELLING_TYPES.items():
        if name in types:
            raise _refusal(config, what, f"model_type {name}")
    if name not in FAMILIES:
        raise NotModelled(
            f"{config.where}: model_type {name} is not modelled yet; "
            f"models of type {', '.join(FAMILIES)} are"
        )
    return name


def not_runnable(family: str, local_layers: int) -> str | None:
    """Name what keeps our runner from executing a model, if anything does."""
    if family not in RUNNABLE:
        return _HAS[family][0]
    return "a sliding window in only some of the layers" if local_layers else None


def _refuse_by_field(config: Fields, has: tuple[str, ...]) -> None:
    for name, what in TELLING_FIELDS.items():
        value = config.get(name)
        if value and what not in has:
            counts = isinstance(value, int) and not isinstance(value, bool)
            shown = f"{name}={value}" if counts else name
            raise _refusal(config, what, shown)


def _refuse_by_layer_types(config: Fields, has: tuple[str, ...]) -> None:
    types = config.get("layer_types")
    if types is None:
        return
    if not isinstance(types, list):
        raise config.error("layer_types", "must be a list")
    for kind in types:
        if kind not in ("full_attention", "sliding_attention"):
            if _RECURRENT in has and kind in HYBRID_LAYERS:
                continue
            recurrent = isinstance(kind, str) and ("linear" in kind or "mamba" in kind)
            what = _RECURRENT if recurrent else "this kind of layer"
            if what in has:
                continue
            raise _refusal(config, what, f"layer_types has {kind}")


def _refusal(config: Fields, what: str, because: str) -> NotModelled:
    """Name what is in the way, and first the type where models of other types have it and are."""
    name = named_family(config)
    said = f"{what} ({because})"
    if name not in FAMILIES and because != f"model_type {name}":
        said = f"model_type {name} ({what}: {because})"
    return NotModelled(
        f"{config.where}: {said} is not modelled yet; models of type {', '.join(FAMILIES)} are"
    )
