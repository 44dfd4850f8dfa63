"""Rotary positions as a Hugging Face config.json spells them, old and new."""

from __future__ import annotations

from stallscope.profiler.checked_json import Fields
from stallscope.profiler.spec import RopeScaling

DEFAULT_THETA = 10_000.0


def rope_theta(config: Fields) -> float:
    """Return the base of the rotary frequencies."""
    # transformers 5 moved it into rope_parameters.
    for place in (config.inner("rope_parameters"), config):
        if place is not None and place.has("rope_theta"):
            return place.positive("rope_theta")
    return DEFAULT_THETA


def rope_scaling(config: Fields) -> RopeScaling | None:
    """Return the scaling of the rotary frequencies if it is one that is modelled."""
    rope = _settings(config)
    if rope is None:
        return None
    match rope_type(config):
        case "linear":
            return RopeScaling("linear", rope.positive("factor"))
        case "llama3":
            return RopeScaling(
                "llama3",
                factor=rope.positive("factor"),
                low_freq_factor=rope.positive("low_freq_factor"),
                high_freq_factor=rope.positive("high_freq_factor"),
                original_max_position=rope.size("original_max_position_embeddings"),
            )
    return None


def rope_type(config: Fields) -> str:
    """Return the name of the scaling; "default" where there is none."""
    rope = _settings(config)
    if rope is None:
        return "default"
    return rope.text("rope_type") or rope.text("type") or "default"


def rope_warnings(config: Fields) -> tuple[str, ...]:
    """Name what the config says about positions that is not modelled."""
    found = []
    kind = rope_type(config)
    if kind not in ("default", "linear", "llama3"):
        found.append(
            f"rope scaling {kind} is not modelled: it changes positions only, not the costs"
        )
    settings = config.inner("rope_parameters")
    if settings is not None and any(isinstance(value, dict) for value in settings.values.values()):
        found.append("rope_parameters by layer type are not modelled: plain positions are used")
    if _partial(config) != 1.0:
        found.append(
            "partial_rotary_factor is not modelled: it changes positions only, not the costs"
        )
    return tuple(found)


def _settings(config: Fields) -> Fields | None:
    return config.inner("rope_scaling") or config.inner("rope_parameters")


def _partial(config: Fields) -> float:
    for place in (config.inner("rope_parameters"), config):
        if place is not None and place.has("partial_rotary_factor"):
            return place.positive("partial_rotary_factor")
    return 1.0
