"""Which matrices a quantised checkpoint leaves as they were, by the lists in its config.json."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping

from stallscope.profiler.checked_json import Fields
from stallscope.profiler.hf_families import DEEPSEEK
from stallscope.profiler.hf_hybrids import layer_kinds
from stallscope.profiler.model_parts import Unquantised

# What the formats call the list: compressed-tensors and ModelOpt, ModelOpt's own file, transformers
# (fp8, AWQ, MXFP4), vLLM's fp8.
_LISTS = ("ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers")
_GATED = ("gate_proj", "up_proj", "down_proj")
_ATTENTION = {
    **{name: name for name in ("q_proj", "k_proj", "v_proj", "o_proj")},
    **{name: name for name in ("q_a_proj", "q_b_proj", "kv_b_proj")},
    "kv_a_proj": "kv_a_proj_with_mqa",
}
_DELTA = {"delta_qkvz": "in_proj_qkvz", "delta_ba": "in_proj_ba", "delta_out": "out_proj"}
_STATE = {
    **{"state_in": "in_proj", "state_out": "out_proj"},
    **{"state_maps": "x_proj", "state_steps": "dt_proj"},
}
_MLP_OF = {
    **dict.fromkeys(("mixtral", "phimoe", "granitemoehybrid"), "block_sparse_moe"),
    **dict.fromkeys(("bamba", "falcon_h1", "jamba"), "feed_forward"),
    "nemotron_h": "mixer",
}
_GRANITE = ("input_linear", "input_linear", "output_linear")
_EXPERTS_OF = {
    **dict.fromkeys(("mixtral", "phimoe"), ("experts.0.w1", "experts.0.w3", "experts.0.w2")),
    "granitemoehybrid": _GRANITE,
}
_FUSED = {
    "phi3": {
        **dict.fromkeys(("q_proj", "k_proj", "v_proj"), "self_attn.qkv_proj"),
        **dict.fromkeys(("gate_proj", "up_proj"), "mlp.gate_up_proj"),
    },
    "phi": {"o_proj": "self_attn.dense", "up_proj": "mlp.fc1", "down_proj": "mlp.fc2"},
    "granitemoehybrid": {
        prefix + name: f"shared_mlp.{module}"
        for prefix in ("", "shared_")
        for name, module in zip(_GATED, _GRANITE, strict=True)
    },
}
_LAYERS = {
    "nemotron_h": ("backbone.layers", "model.layers"),
    "gemma3_text": ("model.layers", "language_model.model.layers", "model.language_model.layers"),
}


def unquantised(config: Fields, family: str) -> tuple[Unquantised, ...]:
    """Return the matrices that the checkpoint's lists name, and in how many layers each.

    Raises InputError for a list that is none, or a pattern that cannot be read.
    """
    given = config.inner("quantization_config")
    is_listed = None if given is None else _listed(given)
    if is_listed is None:
        return ()
    prefixes, is_in = _LAYERS.get(family, ("model.layers",)), _layers(config, family)
    found = []
    for linear, module in _modules(family).items():
        layers = sum(
            is_in(linear, n) and any(is_listed(f"{prefix}.{n}.{module}") for prefix in prefixes)
            for n in range(config.size("num_hidden_layers"))
        )
        if layers:
            found.append(Unquantised(linear, layers))
    return tuple(found)


def _modules(family: str) -> Mapping[str, str]:
    """Return what a family calls each matrix in its layers, by our name (cost/linears.py)."""
    attention, state = ("mixer", "mixer") if family == "nemotron_h" else ("self_attn", "mamba")
    mlp = _MLP_OF.get(family, "mlp")
    shared = "shared_expert" if family.startswith("qwen") else "shared_experts"
    experts = _EXPERTS_OF.get(family, tuple(f"experts.0.{name}" for name in _GATED))
    return {
        **{name: f"{attention}.{module}" for name, module in _ATTENTION.items()},
        **{name: f"linear_attn.{module}" for name, module in _DELTA.items()},
        **{name: f"{state}.{module}" for name, module in _STATE.items()},
        **{name: f"{mlp}.{name}" for name in _GATED},
        **{f"shared_{name}": f"{mlp}.{shared}.{name}" for name in _GATED},
        **{f"expert_{n}": f"{mlp}.{module}" for n, module in zip(_GATED, experts, strict=True)},
        **{"latent_down": f"{mlp}.fc1_latent_proj", "latent_up": f"{mlp}.fc2_latent_proj"},
        **_FUSED.get(family, {}),
    }


def _layers(config: Fields, family: str) -> Callable[[str, int], bool]:
    """Return which layers have a matrix, where a list that names whole layers would mislead."""
    if family == "nemotron_h":
        kinds = layer_kinds(config, family)
        return lambda linear, layer: kinds[layer] == _kind(linear)
    plain = config.get("first_k_dense_replace")
    if family in (*DEEPSEEK, "glm4_moe") and isinstance(plain, int):
        mixed = ("expert_", "shared_")
        return lambda linear, layer: (
            layer >= plain if linear.startswith(mixed) else linear not in _GATED or layer < plain
        )
    return lambda linear, layer: True


def _kind(linear: str) -> str:
    if linear in _ATTENTION:
        return "attention"
    if linear in _STATE:
        return "mamba"
    return "mlp" if linear in _GATED else "moe"


def _listed(given: Fields) -> Callable[[str], bool] | None:
    """Return what tells whether a module is listed; None where nothing is."""
    names = {name for field in _LISTS for name in _names(given, field)}
    plain = {name for name in names if "*" not in name and not name.startswith("re:")}
    patterns = [_pattern(given, name) for name in sorted(names - plain)]
    dynamic = given.inner("dynamic")  # GPTQModel's rules; those with a minus leave modules out
    patterns += [_compiled(given, n[2:]) for n in dynamic or () if n.startswith("-:")]
    if not plain and not patterns:
        return None
    whole = {name.strip(".") for name in plain}
    return lambda module: (
        not whole.isdisjoint(_parts(module)) or any(p.match(module) for p in patterns)
    )


def _names(given: Fields, field: str) -> Iterator[str]:
    listed = given.get(field)
    if listed is None:
        return
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise given.error(field, "must be a list of names")
    yield from listed


def _pattern(given: Fields, name: str) -> re.Pattern[str]:
    """Read a regular expression ("re:…"), or stars, which also stand for what lies within."""
    if name.startswith("re:"):
        return _compiled(given, name[3:])
    shapes = (name, f"{name}.*", f"*.{name}", f"*.{name}.*")
    return re.compile("|".join(fnmatch.translate(shape) for shape in shapes))


def _compiled(given: Fields, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        shown = pattern if len(pattern) <= 40 else pattern[:37] + "..."
        raise given.error("pattern", f"{shown} is no regular expression") from None


def _parts(module: str) -> Iterator[str]:
    """Yield every run of a module's parts: a name may stand for a whole path or for an end."""
    parts = module.split(".")
    for start in range(len(parts)):
        for stop in range(start + 1, len(parts) + 1):
            yield ".".join(parts[start:stop])
