"""What distinguishes the families of models: their own defaults, norms and biases."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.profiler.checked_json import Fields

# Our runner executes these; it models the costs of the others as well.
RUNNABLE = ("llama", "mistral", "qwen2", "qwen3")
FAMILIES = (
    *RUNNABLE,
    *("mixtral", "qwen2_moe", "qwen3_moe", "qwen3_next", "deepseek_v2", "deepseek_v3"),
    *("gemma", "gemma2", "gemma3_text", "gpt_oss", "phi", "phi3", "phimoe"),
)
DEEPSEEK = ("deepseek_v2", "deepseek_v3")
# Other names of the same arithmetic.
_SAME_AS = {"gemma3": "gemma3_text", "kimi_k2": "deepseek_v3"}
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
}

# What transformers 5 takes where a config.json has no such field, as far as costs depend on it.
_GEMMA: Mapping[str, object] = {
    "head_dim": 256,
    "tie_word_embeddings": True,
    "max_position_embeddings": 8192,
}
_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "mixtral": {"num_local_experts": 8, "num_experts_per_tok": 2, "num_key_value_heads": 8},
    "qwen2_moe": {
        "num_experts": 60,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632,
    },
    "qwen3_moe": {
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
        "num_key_value_heads": 4,
    },
    "qwen3_next": {
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "full_attention_interval": 4,
    },
    "deepseek_v2": {
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "moe_intermediate_size": 1407,
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
    },
    "deepseek_v3": {
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "first_k_dense_replace": 3,
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
    },
    "gemma": _GEMMA,
    "gemma2": {**_GEMMA, "num_key_value_heads": 4, "sliding_window": 4096},
    "gemma3_text": {
        **_GEMMA,
        "vocab_size": 262_208,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "sliding_window": 4096,
        "max_position_embeddings": 131_072,
    },
    "gpt_oss": {
        "num_local_experts": 128,
        "num_experts_per_tok": 4,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "sliding_window": 128,
        "attention_bias": True,
    },
    "phimoe": {"num_local_experts": 16, "num_experts_per_tok": 2, "num_key_value_heads": 8},
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


def with_defaults(config: Fields, family: str) -> Fields:
    """Return the config with the family's own defaults where fields are not there."""
    return Fields(config.where, {**_DEFAULTS.get(family, {}), **config.values})


def layer_norms(family: str) -> int:
    """Return how many norms over the hidden size each layer has."""
    return {"gemma2": 4, "gemma3_text": 4, "phi": 1}.get(family, 2)


def has_head_norms(config: Fields, family: str) -> bool:
    """Tell whether queries and keys are normed head by head."""
    own = family in ("qwen3", "qwen3_moe", "qwen3_next", "gemma3_text")
    return own or (family == "phi" and config.flag("qk_layernorm"))


def has_qkv_bias(config: Fields, family: str) -> bool:
    """Tell whether q, k and v have biases."""
    if family == "qwen2_moe":
        return config.flag("qkv_bias", default=True)
    return family in ("qwen2", "phi") or config.flag("attention_bias")


def has_o_bias(config: Fields, family: str) -> bool:
    """Tell whether the attention's output projection has a bias."""
    never = ("qwen2", "qwen2_moe", "mixtral", "phi3")
    return family == "phi" or (family not in never and config.flag("attention_bias"))
