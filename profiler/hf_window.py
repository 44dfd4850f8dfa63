"""Which tokens a layer attends to, as a Hugging Face config.json spells it."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.profiler.checked_json import Fields

_SLIDING = "sliding_attention"
# What transformers takes where a config.json has no such field; null is "none", not absent.
_WINDOW = 4096
_FIRST_WINDOWED = 28
# One layer in so many has none; the others have the window (layer_types says it where given).
_FULL_EVERY = {"gemma2": 2, "gpt_oss": 2, "gemma3_text": 6}
# The window of these is of all layers, and is there only where it is given.
_WHERE_GIVEN = ("mixtral", "phi3", "phimoe", "qwen3_moe")
_HAVE_ONE = ("mistral", "qwen2", "qwen3", "qwen2_moe", *_WHERE_GIVEN, *_FULL_EVERY)


@dataclass(frozen=True, slots=True)
class Windows:
    """The window of all layers, or of the `local_layers` among others that have none."""

    of_all: int | None = None
    local_layers: int = 0
    local: int | None = None


def windows(config: Fields, family: str) -> Windows:
    """Return which layers have a window; none where every token attends to all before it."""
    window = _binding_window(config, family)
    windowed = 0 if window is None else _windowed_layers(config, family)
    if not windowed:
        return Windows()
    if windowed < config.size("num_hidden_layers"):
        return Windows(local_layers=windowed, local=window)
    return Windows(of_all=window)


def window_warnings(config: Fields, family: str) -> tuple[str, ...]:
    """Say where a window is given to a family that has none."""
    window = _binding_window(config, family)
    if family in _HAVE_ONE or window is None or isinstance(config.get("layer_types"), list):
        return ()
    return (f"sliding_window {window} is ignored: a {family}'s tokens attend to all before them",)


def _binding_window(config: Fields, family: str) -> int | None:
    """Return the window that is given, unless no context can grow past it."""
    is_qwen = family.startswith("qwen")
    if not config.flag("use_sliding_window", default=not is_qwen):
        return None
    window = _WINDOW if family == "mistral" or is_qwen else None
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
    if family in _FULL_EVERY:
        every = config.size_or("sliding_window_pattern", _FULL_EVERY[family])
        return layers - layers // every
    if family not in _HAVE_ONE:
        return 0
    if family == "mistral" or family in _WHERE_GIVEN:
        return layers
    # In qwen2 and qwen3, where it is on at all, only from max_window_layers upwards.
    first = config.get("max_window_layers")
    if first is None:
        first = _FIRST_WINDOWED
    if isinstance(first, bool) or not isinstance(first, int) or first < 0:
        raise config.error("max_window_layers", "must be a whole number")
    return max(0, layers - first)
