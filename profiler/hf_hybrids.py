"""Models that mix Mamba layers with attention, as a config.json spells them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from stallscope.profiler.checked_json import Fields
from stallscope.profiler.model_parts import StateSpace

HYBRIDS = ("bamba", "falcon_h1", "granitemoehybrid", "jamba", "nemotron_h")
# Read here, or of these families alone and without effect on a step: factors, chunks of a prompt.
HYBRID_FIELDS = frozenset(
    {
        *("attn_layer_indices", "attn_layer_offset", "attn_layer_period"),
        "attention_head_dim",
        *("expert_layer_offset", "expert_layer_period", "hybrid_override_pattern"),
        *("layers_block_type", "shared_intermediate_size", "moe_latent_size"),
        *("mamba_d_conv", "mamba_d_head", "mamba_d_ssm", "mamba_dt_rank", "mamba_expand"),
        *("mamba_head_dim", "mamba_n_groups", "mamba_n_heads", "mamba_num_heads", "n_groups"),
        *("conv_kernel", "expand", "mamba_conv_bias", "mamba_proj_bias", "mamba_rms_norm"),
        *("projectors_bias", "use_bias", "use_conv_bias", "mamba_ssm_cache_dtype"),
        *("moe_shared_expert_intermediate_size", "mamba_use_mlp", "mlp_expansion_factor"),
        *("attention_in_multiplier", "attention_multiplier", "attention_out_multiplier"),
        *("embedding_multiplier", "key_multiplier", "lm_head_multiplier", "logits_scaling"),
        *("mlp_multipliers", "residual_multiplier", "ssm_in_multiplier", "ssm_multipliers"),
        *("ssm_out_multiplier", "chunk_size", "mamba_chunk_size", "mamba_hidden_act"),
        *("mamba_norm_before_gate", "mlp_hidden_act", "moe_shared_expert_overlap"),
        *("mtp_layers_block_type", "num_logits_to_keep", "position_embedding_type"),
        *("rescale_prenorm_residual", "residual_in_fp32", "time_step_floor", "time_step_limit"),
        *("time_step_max", "time_step_min", "time_step_rank", "use_associative_scan"),
        *("use_mamba_kernels", "use_mambapy", "z_loss_coefficient", "layer_norm_epsilon"),
        *("init_method", "normalization_function", "time_step_scale", "mamba_dt_init_floor"),
        *("mamba_dt_max", "mamba_dt_min", "mamba_dt_limit", "use_mamba_ssm"),
    }
)

# nemotron_h's pattern: a letter a layer.
_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_NAMED_LIKE = {"linear_attention": "mamba", "full_attention": "attention"}


def layer_kinds(config: Fields, family: str) -> tuple[str, ...]:
    """Return what each layer of a hybrid is: mamba, attention, mlp, moe; () for other families.

    Only nemotron_h has layers of an MLP alone; falcon_h1's are both of mamba and attention.
    """
    return _KINDS[family](config) if family in _KINDS else ()


def with_layer_count(config: Fields) -> Fields:
    """Return the config with num_hidden_layers, which some leave to their list of layers."""
    listed = config.get("hybrid_override_pattern") or config.get("layers_block_type")
    if config.has("num_hidden_layers") or not isinstance(listed, list | str) or not listed:
        return config
    return Fields(config.where, {**config.values, "num_hidden_layers": len(listed)})


def state_space(config: Fields, family: str) -> StateSpace | None:
    """Return the Mamba layers, if the family has some."""
    if family not in HYBRIDS:
        return None
    kinds = layer_kinds(config, family)
    layers = sum(kind in ("mamba", "both") for kind in kinds)
    if not layers:
        return None
    return _SPACES.get(family, _second)(config, layers)


def _from_types(config: Fields, default: str) -> tuple[str, ...]:
    types = config.get("layer_types") or config.get("layers_block_type")
    layers = config.size("num_hidden_layers")
    if types is None:
        return (default,) * layers
    known = (*_LETTERS.values(), *_NAMED_LIKE)
    if not isinstance(types, list) or any(kind not in known for kind in types):
        raise config.error("layer_types", f"must be a list of {', '.join(known)}")
    if len(types) != layers:
        raise config.error("layer_types", f"names {len(types)} layers, num_hidden_layers {layers}")
    return tuple(_NAMED_LIKE.get(str(kind), str(kind)) for kind in types)


def _nemotron(config: Fields) -> tuple[str, ...]:
    pattern = config.text("hybrid_override_pattern")
    if pattern is None:
        return _from_types(config, "mlp")
    if any(letter not in _LETTERS for letter in pattern):
        raise config.error("hybrid_override_pattern", f"may hold {' '.join(_LETTERS)} only")
    layers = config.size("num_hidden_layers")
    if len(pattern) != layers:
        raise config.error(
            "hybrid_override_pattern", f"has {len(pattern)} layers, num_hidden_layers {layers}"
        )
    return tuple(_LETTERS[letter] for letter in pattern)


def _bamba(config: Fields) -> tuple[str, ...]:
    indices = config.get("attn_layer_indices") or []
    if not isinstance(indices, list):
        raise config.error("attn_layer_indices", "must be a list")
    layers = range(config.size("num_hidden_layers"))
    return tuple("attention" if n in indices else "mamba" for n in layers)


def _jamba(config: Fields) -> tuple[str, ...]:
    attends = every(config, "attn_layer")
    layers = range(config.size("num_hidden_layers"))
    return tuple("attention" if attends(n) else "mamba" for n in layers)


def every(config: Fields, name: str) -> Callable[[int], bool]:
    """Return which layers a period and an offset choose."""
    period, offset = config.size(f"{name}_period"), config.get(f"{name}_offset")
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset < period:
        raise config.error(f"{name}_offset", f"must be a whole number below the period {period}")
    return lambda layer: layer % period == offset


_KINDS: Mapping[str, Callable[[Fields], tuple[str, ...]]] = {
    "bamba": _bamba,
    "falcon_h1": lambda config: ("both",) * config.size("num_hidden_layers"),
    "granitemoehybrid": lambda config: _from_types(config, "mamba"),
    "jamba": _jamba,
    "nemotron_h": _nemotron,
}


def _first(config: Fields, layers: int) -> StateSpace:
    hidden = config.size("hidden_size")
    rank = config.get("mamba_dt_rank")
    has_bias = config.flag("mamba_proj_bias")
    return StateSpace(
        layers=layers,
        channels=config.size("mamba_expand") * hidden,
        state_size=config.size("mamba_d_state"),
        conv_width=config.size("mamba_d_conv"),
        step_rank=math.ceil(hidden / 16)
        if rank in (None, "auto")
        else config.size("mamba_dt_rank"),
        conv_bias=config.flag("mamba_conv_bias"),
        in_bias=has_bias,
        out_bias=has_bias,
    )


def _second(config: Fields, layers: int) -> StateSpace:
    has_bias = config.flag("mamba_proj_bias")
    return StateSpace(
        layers=layers,
        channels=config.size("mamba_expand") * config.size("hidden_size"),
        state_size=config.size("mamba_d_state"),
        conv_width=config.size("mamba_d_conv"),
        heads=config.size("mamba_n_heads"),
        groups=config.size("mamba_n_groups"),
        conv_bias=config.flag("mamba_conv_bias"),
        in_bias=has_bias,
        out_bias=has_bias,
    )


def _falcon(config: Fields, layers: int) -> StateSpace:
    expanded = config.size_or("mamba_expand", 2) * config.size("hidden_size")
    return StateSpace(
        layers=layers,
        channels=config.size_or("mamba_d_ssm", expanded),
        state_size=config.size("mamba_d_state"),
        conv_width=config.size("mamba_d_conv"),
        heads=config.size("mamba_n_heads"),
        groups=config.size("mamba_n_groups"),
        output_norm=config.flag("mamba_rms_norm"),
        conv_bias=config.flag("mamba_conv_bias"),
        in_bias=config.flag("mamba_proj_bias"),
        out_bias=config.flag("projectors_bias"),
    )


def _of_nemotron(config: Fields, layers: int) -> StateSpace:
    is_wide = config.text("mamba_ssm_cache_dtype") == "float32"
    heads = config.size("mamba_num_heads")
    return StateSpace(
        layers=layers,
        channels=heads * config.size("mamba_head_dim"),
        state_size=config.size("ssm_state_size"),
        conv_width=config.size("conv_kernel"),
        heads=heads,
        groups=config.size("n_groups"),
        conv_bias=config.flag("use_conv_bias"),
        in_bias=config.flag("use_bias"),
        out_bias=config.flag("use_bias"),
        state_bytes=4.0 if is_wide else None,
    )


_SPACES = {"jamba": _first, "falcon_h1": _falcon, "nemotron_h": _of_nemotron}
