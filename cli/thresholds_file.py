"""Thresholds from a TOML file: the keys of Thresholds at the top level, each checked by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stallscope.errors import InputError
from stallscope.profiler.nearest import did_you_mean

if TYPE_CHECKING:
    from stallscope.analyzers.thresholds import Thresholds

# Every other threshold is a fraction from 0 to 1.
RANGES = {"limit_margin": (1.0, 100.0), "model_error": (-1.0, 0.0)}


def read_thresholds(path: Path | None) -> Thresholds:
    """Return the default thresholds with those of the file in their place."""
    from dataclasses import fields

    from stallscope.analyzers.thresholds import Thresholds

    if path is None:
        return Thresholds()
    names = [field.name for field in fields(Thresholds)]
    table = load_toml(path)
    for key in table:
        if key not in names:
            raise InputError(
                f"--thresholds {path}: unknown key {key!r}; {did_you_mean(key, names)}"
            )
    return Thresholds(**{key: checked(path, key, value) for key, value in table.items()})


def load_toml(path: Path) -> dict[str, object]:
    """Read a TOML file."""
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"--thresholds {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"--thresholds {path}: not TOML: {error}") from error


def checked(path: Path, key: str, value: object) -> float:
    """Return the value as a float, or say why it cannot be this threshold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"--thresholds {path}: {key} must be a number, not {value!r}")
    low, high = RANGES.get(key, (0.0, 1.0))
    if not low <= value <= high:
        raise InputError(
            f"--thresholds {path}: {key} must be from {low:g} to {high:g}, not {value}"
        )
    return float(value)
