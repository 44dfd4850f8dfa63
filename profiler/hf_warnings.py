"""What a config.json says that the arithmetic leaves out, in plain words."""

from __future__ import annotations

from stallscope.profiler.checked_json import Fields
from stallscope.profiler.hf_fields import KNOWN_FIELDS
from stallscope.profiler.hf_rope import rope_warnings
from stallscope.profiler.hf_window import window_warnings


def config_warnings(config: Fields, family: str) -> tuple[str, ...]:
    """Name every field that changes the arithmetic or might, and is not modelled."""
    return (
        *window_warnings(config, family),
        *_quantization(config),
        *_biases(config, family),
        *_activation(config),
        *rope_warnings(config),
        *_unknown(config),
    )


def _quantization(config: Fields) -> tuple[str, ...]:
    quantization = config.inner("quantization_config")
    if quantization is None:
        return ()
    method = quantization.text("quant_method") or "of unnamed method"
    return (
        f"quantization_config ({method}) is not read: weights are counted at the dtype asked for, "
        "without scales and zero points",
    )


def _biases(config: Fields, family: str) -> tuple[str, ...]:
    found = []
    layers, hidden = config.size("num_hidden_layers"), config.size("hidden_size")
    if family == "qwen2":
        if not config.flag("attention_bias", default=True):
            found.append("attention_bias false is ignored: qwen2 always has biases on q, k and v")
    elif config.flag("attention_bias"):
        found.append(
            f"the bias on o_proj (attention_bias) is not counted: {layers * hidden:,} parameters"
        )
    if config.flag("mlp_bias"):
        missing = layers * (2 * config.size("intermediate_size") + hidden)
        found.append(f"the biases of the MLP (mlp_bias) are not counted: {missing:,} parameters")
    return tuple(found)


def _activation(config: Fields) -> tuple[str, ...]:
    found = []
    activation = config.text("hidden_act") or "silu"
    if activation not in ("silu", "swish"):
        found.append(
            f"hidden_act {activation} is not modelled: silu is run; the costs are the same"
        )
    if config.flag("use_mrope"):
        found.append("use_mrope is not modelled: it changes positions only, not the costs")
    return tuple(found)


def _unknown(config: Fields) -> tuple[str, ...]:
    names = sorted(name for name in config if config.has(name) and name not in KNOWN_FIELDS)
    if not names:
        return ()
    return (f"fields not known here and not modelled: {', '.join(names)}",)
