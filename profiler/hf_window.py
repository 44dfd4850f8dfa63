"""Which tokens a layer attends to, as a Hugging Face config.json spells it."""

from __future__ import annotations

from stallscope.errors import InputError
from stallscope.profiler.checked_json import Fields

_SLIDING = "sliding_attention"
# What transformers takes where a config.json has no such field; null is "none", not absent.
_WINDOW = 4096
_FIRST_WINDOWED = 28


def sliding_window(config: Fields, family: str) -> int | None:
    """Return the window of all layers, or None where every token attends to all before it.

    Raises InputError where only some layers have one: their KV caches live differently.
    """
    window = _binding_window(config, family)
    if window is None:
        return None
    windowed = _windowed_layers(config, family)
    layers = config.size("num_hidden_layers")
    if 0 < windowed < layers:
        raise InputError(
            f"{config.where}: a sliding window in only {windowed} of {layers} layers "
            f"(sliding_window={window}) is not modelled yet; models with one in all layers or "
            "in none are"
        )
    return window if windowed else None


def window_warnings(config: Fields, family: str) -> tuple[str, ...]:
    """Say where a window is given to a family that has none."""
    window = _binding_window(config, family)
    if family != "llama" or window is None or isinstance(config.get("layer_types"), list):
        return ()
    return (f"sliding_window {window} is ignored: a llama's tokens attend to all before them",)


def _binding_window(config: Fields, family: str) -> int | None:
    """Return the window that is given, unless no context can grow past it."""
    is_qwen = family.startswith("qwen")
    if not config.flag("use_sliding_window", default=not is_qwen):
        return None
    window = _WINDOW if family != "llama" else None
    if "sliding_window" in config:
        window = config.size("sliding_window") if config.get("sliding_window") else None
    if window is None:
        return None
    return window if window < config.size("max_position_embeddings") else None


def _windowed_layers(config: Fields, family: str) -> int:
    layers = config.size("num_hidden_layers")
    types = config.get("layer_types")
    if isinstance(types, list):
        return sum(kind == _SLIDING for kind in types)
    if family == "llama":
        return 0
    if family == "mistral":
        return layers
    # In qwen2 and qwen3, where it is on at all, only from max_window_layers upwards.
    first = config.get("max_window_layers")
    if first is None:
        first = _FIRST_WINDOWED
    if isinstance(first, bool) or not isinstance(first, int) or first < 0:
        raise config.error("max_window_layers", "must be a whole number")
    return max(0, layers - first)
