"""Models whose arithmetic we cannot do yet, refused by the name of what is in the way."""

from __future__ import annotations

from stallscope.errors import NotModelled
from stallscope.profiler.checked_json import Fields

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
_FAMILY_OF_ARCHITECTURE = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
}

_EXPERTS = "mixture of experts"
_LATENT = "multi-head latent attention"
_RECURRENT = "linear attention or a state-space layer"
_ENCODER = "an encoder-decoder"
_UNGATED = "an MLP without a gate"
_MULTIMODAL = "a model of more than text"
_SOFT_CAPPED = "soft-capped logits"
_OTHER_NORMS = "norms that add one to their weight"

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
    _RECURRENT: ("mamba", "mamba2", "falcon_mamba", "rwkv", "jamba", "recurrent_gemma"),
    _SOFT_CAPPED: ("gemma2",),
    _OTHER_NORMS: ("gemma", "gemma3_text"),
    _ENCODER: ("t5", "mt5", "bart", "mbart", "pegasus", "whisper"),
    _UNGATED: (
        *("gpt2", "gptj", "gpt_neo", "gpt_neox", "gpt_bigcode", "opt", "bloom", "mpt"),
        *("falcon", "phi", "starcoder2", "nemotron"),
    ),
}


def family(config: Fields) -> str:
    """Return one of FAMILIES; raise NotModelled for a model of another kind."""
    _refuse_by_field(config)
    _refuse_by_layer_types(config)
    name = config.text("model_type") or _from_architectures(config)
    for what, types in _TELLING_TYPES.items():
        if name in types:
            raise _refusal(config, what, f"model_type {name}")
    if name not in FAMILIES:
        raise NotModelled(
            f"{config.where}: model_type {name} is not modelled yet; "
            f"models of type {', '.join(FAMILIES)} are"
        )
    return name


def _refuse_by_field(config: Fields) -> None:
    for name, what in TELLING_FIELDS.items():
        value = config.get(name)
        if value:
            counts = isinstance(value, int) and not isinstance(value, bool)
            shown = f"{name}={value}" if counts else name
            raise _refusal(config, what, shown)


def _refuse_by_layer_types(config: Fields) -> None:
    types = config.get("layer_types")
    if types is None:
        return
    if not isinstance(types, list):
        raise config.error("layer_types", "must be a list")
    for kind in types:
        if kind not in ("full_attention", "sliding_attention"):
            recurrent = isinstance(kind, str) and ("linear" in kind or "mamba" in kind)
            what = _RECURRENT if recurrent else "this kind of layer"
            raise _refusal(config, what, f"layer_types has {kind}")


def _from_architectures(config: Fields) -> str:
    names = config.get("architectures")
    if isinstance(names, list):
        for name in names:
            if name in _FAMILY_OF_ARCHITECTURE:
                return _FAMILY_OF_ARCHITECTURE[name]
        if names:
            return str(names[0])
    raise config.error("model_type", f"is missing; say one of {', '.join(FAMILIES)}")


def _refusal(config: Fields, what: str, because: str) -> NotModelled:
    return NotModelled(
        f"{config.where}: {what} ({because}) is not modelled yet; "
        f"dense models of type {', '.join(FAMILIES)} are"
    )
