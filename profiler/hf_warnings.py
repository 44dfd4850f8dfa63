"""What a config.json says that the arithmetic leaves out, in plain words."""

from __future__ import annotations

from stallscope.profiler.checked_json import Fields
from stallscope.profiler.hf_families import RUNNABLE
from stallscope.profiler.hf_fields import KNOWN_FIELDS
from stallscope.profiler.hf_hybrids import HYBRID_FIELDS, HYBRIDS
from stallscope.profiler.hf_parts import draft_layers, whole
from stallscope.profiler.hf_quantization import stored
from stallscope.profiler.hf_rope import rope_warnings
from stallscope.profiler.hf_window import window_warnings


def config_warnings(config: Fields, family: str) -> tuple[str, ...]:
    """Name every field that changes the arithmetic or might, and is not modelled."""
    return (
        *window_warnings(config, family),
        *_quantization(config),
        *_biases(config, family),
        *_activation(config, family),
        *_left_out(config, family),
        *(rope_warnings(config) if family in RUNNABLE else ()),
        *_unknown(config, family),
    )


def _quantization(config: Fields) -> tuple[str, ...]:
    quantization = config.inner("quantization_config")
    if quantization is None or stored(config) is not None:
        return ()
    method = quantization.text("quant_method") or "of unnamed method"
    return (
        f"quantization_config ({method}) is not read: weights are counted at the dtype asked for, "
        "without scales and zero points",
    )


def _biases(config: Fields, family: str) -> tuple[str, ...]:
    """Name the biases that are counted, where a model that runs is run without them."""
    found = []
    if family == "qwen2":
        if not config.flag("attention_bias", default=True):
            found.append("attention_bias false is ignored: qwen2 always has biases on q, k and v")
    elif family in RUNNABLE and config.flag("attention_bias"):
        found.append("the bias on o_proj (attention_bias) is counted, but not run")
    if family in RUNNABLE and config.flag("mlp_bias"):
        found.append("the biases of the MLP (mlp_bias) are counted, but not run")
    return tuple(found)


def _activation(config: Fields, family: str) -> tuple[str, ...]:
    found = []
    activation = config.text("hidden_act") or "silu"
    if family in RUNNABLE and activation not in ("silu", "swish"):
        found.append(
            f"hidden_act {activation} is not modelled: silu is run; the costs are the same"
        )
    if config.flag("use_mrope"):
        found.append("use_mrope is not modelled: it changes positions only, not the costs")
    return tuple(found)


def _left_out(config: Fields, family: str) -> tuple[str, ...]:
    """Name whole parts of a checkpoint that a step of the language model does not run."""
    found = []
    if whole(config, "num_nextn_predict_layers", 0) and not draft_layers(config, family):
        found.append("num_nextn_predict_layers: the layers that draft tokens are not counted")
    if config.has("vision_config"):
        found.append("vision_config: only the language model is counted")
    return tuple(found)


def _unknown(config: Fields, family: str) -> tuple[str, ...]:
    known = KNOWN_FIELDS | (HYBRID_FIELDS if family in HYBRIDS else frozenset())
    names = sorted(name for name in config if config.has(name) and name not in known)
    if not names:
        return ()
    return (f"fields not known here and not modelled: {', '.join(names)}",)
