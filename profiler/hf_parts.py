"""Experts, latent and linear attention, and weight formats as a config.json spells them."""

from __future__ import annotations

from stallscope.profiler.checked_json import Fields
from stallscope.profiler.hf_families import DEEPSEEK
from stallscope.profiler.hf_hybrids import every, layer_kinds
from stallscope.profiler.model_parts import Experts, Latent, LinearAttention

_ALL_LAYERS = ("mixtral", "phimoe", "gpt_oss")
_QWEN = ("qwen2_moe", "qwen3_moe", "qwen3_next")


def experts(config: Fields, family: str) -> Experts | None:
    """Return the mixture of experts, if the family has one."""
    if family in _ALL_LAYERS:
        return Experts(
            count=config.size("num_local_experts"),
            per_token=config.size("num_experts_per_tok"),
            intermediate_size=config.size("intermediate_size"),
            layers=config.size("num_hidden_layers"),
            bias=family == "gpt_oss",
        )
    if family in DEEPSEEK or family == "glm4_moe":
        return _deepseek_experts(config)
    if family in _MIXED_HYBRIDS:
        found = _MIXED_HYBRIDS[family](config)
        return found if found.layers else None
    return _qwen_experts(config, family) if family in _QWEN else None


def _deepseek_experts(config: Fields) -> Experts:
    size = config.size("moe_intermediate_size")
    kinds = config.get("mlp_layer_types")
    layers = config.size("num_hidden_layers") - whole(config, "first_k_dense_replace", 0)
    return Experts(
        count=config.size("n_routed_experts"),
        per_token=config.size("num_experts_per_tok"),
        intermediate_size=size,
        layers=kinds.count("sparse") if isinstance(kinds, list) else max(0, layers),
        shared_size=size * whole(config, "n_shared_experts", 0),
    )


def _qwen_experts(config: Fields, family: str) -> Experts:
    plain = config.get("mlp_only_layers") or []
    if not isinstance(plain, list):
        raise config.error("mlp_only_layers", "must be a list")
    every = config.size_or("decoder_sparse_step", 1)
    layers = range(config.size("num_hidden_layers"))
    is_shared = family != "qwen3_moe"
    return Experts(
        count=config.size("num_experts"),
        per_token=config.size("num_experts_per_tok"),
        intermediate_size=config.size("moe_intermediate_size"),
        layers=sum(n not in plain and (n + 1) % every == 0 for n in layers),
        shared_size=config.size("shared_expert_intermediate_size") if is_shared else 0,
        shared_gate=is_shared,
    )


def _jamba_experts(config: Fields) -> Experts:
    count, chosen = config.size("num_experts"), every(config, "expert_layer")
    layers = range(config.size("num_hidden_layers"))
    return Experts(
        count=count,
        per_token=config.size("num_experts_per_tok"),
        intermediate_size=config.size("intermediate_size"),
        layers=sum(chosen(n) for n in layers) if count > 1 else 0,
    )


def _granite_experts(config: Fields) -> Experts:
    count = whole(config, "num_local_experts", 0)
    return Experts(
        count=count,
        per_token=whole(config, "num_experts_per_tok", 0),
        intermediate_size=config.size("intermediate_size"),
        layers=config.size("num_hidden_layers") if count else 0,
        shared_size=config.size("shared_intermediate_size"),
    )


def _nemotron_experts(config: Fields) -> Experts:
    return Experts(
        count=config.size("n_routed_experts"),
        per_token=config.size("num_experts_per_tok"),
        intermediate_size=config.size("moe_intermediate_size"),
        layers=layer_kinds(config, "nemotron_h").count("moe"),
        shared_size=config.size("moe_shared_expert_intermediate_size"),
        width=config.size("moe_latent_size") if config.has("moe_latent_size") else None,
    )


_MIXED_HYBRIDS = {
    "jamba": _jamba_experts,
    "granitemoehybrid": _granite_experts,
    "nemotron_h": _nemotron_experts,
}


def latent(config: Fields, family: str) -> Latent | None:
    """Return the sizes of multi-head latent attention, if the family has it."""
    if family not in DEEPSEEK:
        return None
    return Latent(
        kv_rank=config.size("kv_lora_rank"),
        rope_dim=config.size("qk_rope_head_dim"),
        nope_dim=config.size("qk_nope_head_dim"),
        value_dim=config.size("v_head_dim"),
        query_rank=config.size("q_lora_rank") if config.has("q_lora_rank") else None,
    )


def linear_attention(config: Fields, family: str) -> LinearAttention | None:
    """Return the layers whose state does not grow, if the family has some."""
    if family != "qwen3_next":
        return None
    layers = config.size("num_hidden_layers")
    types = config.get("layer_types")
    full = layers // config.size("full_attention_interval")
    if isinstance(types, list):
        full = sum(kind == "full_attention" for kind in types)
    return LinearAttention(
        layers=layers - full,
        key_heads=config.size("linear_num_key_heads"),
        value_heads=config.size("linear_num_value_heads"),
        key_dim=config.size("linear_key_head_dim"),
        value_dim=config.size("linear_value_head_dim"),
        conv_width=config.size("linear_conv_kernel_dim"),
    )


def draft_layers(config: Fields, family: str) -> int:
    """Return how many layers the checkpoint has that draft tokens."""
    if family not in _DRAFTING:
        return 0
    given = "num_mtp_layers" if config.has("num_mtp_layers") else "num_nextn_predict_layers"
    return whole(config, given, _DRAFTING[family])


# With how many where the config.json does not say: qwen3-next's are released with one, and vLLM
# takes one for it.
_DRAFTING = {"deepseek_v3": 0, "glm4_moe": 0, "qwen2": 0, "qwen3_next": 1}


def whole(config: Fields, name: str, default: int) -> int:
    """Return a whole number from 0, or the default where it is not given."""
    value = config.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise config.error(name, "must be a whole number")
    return value
