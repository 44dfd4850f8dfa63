"""Models by name: presets, which are stored as config.json files, and the user's own files."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.checked_json import Fields, parse_object, read_object
from stallscope.profiler.hf_config import model_from_config
from stallscope.profiler.nearest import did_you_mean
from stallscope.profiler.spec import ModelSpec

RUNNABLE_PRESETS = ("tiny-26m", "llama-125m", "llama-1b")
_SHAPE_PRESETS = (
    "llama-7b",
    "llama-13b",
    "llama-2-70b",
    "llama-3-8b",
    "llama-3-70b",
    "qwen2.5-0.5b",
    "qwen2.5-7b",
    "qwen3-0.6b",
    "qwen3-8b",
    "mistral-7b",
    "mistral-7b-v0.1",
)


def preset_names() -> tuple[str, ...]:
    """Return the presets' names, those that `run` can execute by itself first."""
    return RUNNABLE_PRESETS + _SHAPE_PRESETS


def load_model(name: str) -> ModelSpec:
    """Return a model by preset name (without case), config.json, or folder with one.

    A preset's name wins over a file of the same name; write ./NAME for the file.
    """
    if name.lower() in preset_names():
        return model_from_config(_preset_config(name.lower()), name.lower())
    path = _find(name)
    return model_from_config(read_object(path), _name_of(path))


def model_config(name: str) -> Fields:
    """Return the config.json behind a model's name, unread."""
    if name.lower() in preset_names():
        return _preset_config(name.lower())
    return read_object(_find(name))


def _find(name: str) -> Path:
    path = Path(name)
    try:
        if name and path.is_dir():
            return path / "config.json"
        if not name or not (path.exists() or _looks_like_path(name)):
            raise InputError(_unknown_preset(name))
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    return path


def _preset_config(name: str) -> Fields:
    file = resources.files("stallscope.profiler.data.models") / f"{name}.json"
    return parse_object(file.read_text("utf-8"), f"preset {name}")


def _looks_like_path(name: str) -> bool:
    return name.endswith(".json") or name != Path(name).name


def _name_of(path: Path) -> str:
    return path.resolve().parent.name if path.name == "config.json" else path.stem


def _unknown_preset(name: str) -> str:
    hint = did_you_mean(name, preset_names())
    return f"{name!r} is no model preset and no file; {hint} A config.json or its folder works too"
