"""What distinguishes the families of models: their own defaults, norms and biases."""

from __future__ import annotations

from stallscope.profiler.checked_json import Fields
from stallscope.profiler.hf_defaults import DEFAULTS

# Our runner executes these; it models the costs of the others as well.
RUNNABLE = ("llama", "mistral", "qwen2", "qwen3")
FAMILIES = (
    *RUNNABLE,
    *("mixtral", "qwen2_moe", "qwen3_moe", "qwen3_next", "deepseek_v2", "deepseek_v3"),
    *("gemma", "gemma2", "gemma3_text", "gpt_oss", "phi", "phi3", "phimoe", "glm4_moe"),
    *("bamba", "falcon_h1", "granitemoehybrid", "jamba", "nemotron_h"),
)
DEEPSEEK = ("deepseek_v2", "deepseek_v3")
# Other names of the same arithmetic.
_SAME_AS = {
    "gemma3": "gemma3_text",
    "glm4_moe_lite": "deepseek_v3",
    "kimi_k2": "deepseek_v3",
    "mimo": "qwen2",
}
_ARCHITECTURES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "MixtralForCausalLM": "mixtral",
    "Qwen2MoeForCausalLM": "qwen2_moe",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "Qwen3NextForCausalLM": "qwen3_next",
    "DeepseekV2ForCausalLM": "deepseek_v2",
    "DeepseekV3ForCausalLM": "deepseek_v3",
    "GemmaForCausalLM": "gemma",
    "Gemma2ForCausalLM": "gemma2",
    "Gemma3ForCausalLM": "gemma3_text",
    "GptOssForCausalLM": "gpt_oss",
    "PhiForCausalLM": "phi",
    "Phi3ForCausalLM": "phi3",
    "PhimoeForCausalLM": "phimoe",
    "Glm4MoeForCausalLM": "glm4_moe",
    "Glm4MoeLiteForCausalLM": "deepseek_v3",
    "MiMoForCausalLM": "qwen2",
    "BambaForCausalLM": "bamba",
    "FalconH1ForCausalLM": "falcon_h1",
    "GraniteMoeHybridForCausalLM": "granitemoehybrid",
    "JambaForCausalLM": "jamba",
    "NemotronHForCausalLM": "nemotron_h",
}


def named_family(config: Fields) -> str:
    """Return what a config.json calls its model's family, one of FAMILIES where it is known."""
    name = config.text("model_type") or _from_architectures(config)
    return _SAME_AS.get(name, name)


def _from_architectures(config: Fields) -> str:
    names = config.get("architectures")
    if isinstance(names, list):
        for name in names:
            if name in _ARCHITECTURES:
                return _ARCHITECTURES[name]
        if names:
            return str(names[0])
    raise config.error("model_type", f"is missing; say one of {', '.join(FAMILIES)}")


# What a model of text and images says once for both, and that it has images.
_OF_BOTH = ("quantization_config", "torch_dtype", "dtype", "eos_token_id", "vision_config")


def language_model(config: Fields) -> Fields:
    """Return the part that describes the language model: all, unless it also takes images."""
    text = config.inner("text_config")
    if config.text("model_type") != "gemma3" or text is None:
        return config
    own = {name: config.get(name) for name in _OF_BOTH if config.has(name)}
    return Fields(config.where, {**own, **text.values, "model_type": "gemma3_text"})


# What some configs of a family call a field.
_CALLED = {"nemotron_h": {"attention_head_dim": "head_dim"}}


def with_defaults(config: Fields, family: str) -> Fields:
    """Return the config with the family's own defaults where fields are not there."""
    called = _CALLED.get(family, {}).items()
    renamed = {field: config.get(name) for name, field in called if config.has(name)}
    return Fields(config.where, {**DEFAULTS.get(family, {}), **renamed, **config.values})


def layer_norms(family: str) -> int:
    """Return how many norms over the hidden size each layer has."""
    return {"gemma2": 4, "gemma3_text": 4, "phi": 1, "nemotron_h": 1}.get(family, 2)


def has_head_norms(config: Fields, family: str) -> bool:
    """Tell whether queries and keys are normed head by head."""
    own = family in ("qwen3", "qwen3_moe", "qwen3_next", "gemma3_text")
    given = {"phi": "qk_layernorm", "glm4_moe": "use_qk_norm"}.get(family)
    return own or (given is not None and config.flag(given))


def has_qkv_bias(config: Fields, family: str) -> bool:
    """Tell whether q, k and v have biases."""
    if family == "qwen2_moe":
        return config.flag("qkv_bias", default=True)
    if family in ("jamba", "nemotron_h"):
        return False
    return family in ("qwen2", "phi") or config.flag("attention_bias")


def has_o_bias(config: Fields, family: str) -> bool:
    """Tell whether the attention's output projection has a bias."""
    never = ("qwen2", "qwen2_moe", "mixtral", "phi3", "glm4_moe", "jamba", "nemotron_h")
    return family == "phi" or (family not in never and config.flag("attention_bias"))
