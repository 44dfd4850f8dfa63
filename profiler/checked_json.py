"""JSON from outside, read field by field: every complaint names the file and the field."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stallscope.errors import InputError

# Past every real figure, and small enough for products of several to stay finite.
LARGEST = 10**15
LARGEST_NUMBER = 1e30


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object and where it is from; each getter checks what it returns.

    A field that is absent or null is taken as not given.
    """

    where: str
    values: Mapping[str, object]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def has(self, name: str) -> bool:
        """Tell whether the field is given."""
        return self.values.get(name) is not None

    def get(self, name: str) -> object:
        """Return the field unchecked, or None."""
        return self.values.get(name)

    def size(self, name: str) -> int:
        """Return a positive whole number that must be given."""
        value = self._given(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= LARGEST:
            raise self.error(name, f"must be a positive whole number, not {_shown(value)}")
        return value

    def size_or(self, name: str, default: int) -> int:
        """Return a positive whole number, or the default where it is not given."""
        return self.size(name) if self.has(name) else default

    def positive(self, name: str) -> float:
        """Return a positive finite number that must be given."""
        value = self._given(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(name, f"must be a number, not {_shown(value)}")
        if not 0 < value < math.inf or value > LARGEST_NUMBER:
            raise self.error(name, f"must be positive and finite, not {_shown(value)}")
        return float(value)

    def positive_or(self, name: str, default: float) -> float:
        """Return a positive finite number, or the default where it is not given."""
        return self.positive(name) if self.has(name) else default

    def flag(self, name: str, default: bool = False) -> bool:
        """Return true or false."""
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(name, f"must be true or false, not {_shown(value)}")
        return value

    def text(self, name: str) -> str | None:
        """Return a text, or None where it is not given."""
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise self.error(name, f"must be a text, not {_shown(value)}")
        return value

    def inner(self, name: str) -> Fields | None:
        """Return the object under `name`, or None where it is not given."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(name, f"must be an object, not {_shown(value)}")
        return Fields(f"{self.where}: {name}", value)

    def error(self, name: str, problem: str) -> InputError:
        """Return the error that names this file and the field."""
        return InputError(f"{self.where}: {name} {problem}")

    def _given(self, name: str) -> object:
        if not self.has(name):
            raise self.error(name, "is missing; add it")
        return self.values[name]


def parse_object(text: str, where: str) -> Fields:
    """Parse a JSON object; raise InputError for anything else."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise InputError(f"{where}: not valid JSON: nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{where}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{where}: must hold one JSON object, not {_shown(value)}")
    return Fields(where, value)


def read_object(path: Path) -> Fields:
    """Read a file that holds one JSON object; raise InputError if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file; give a JSON file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    return parse_object(text, str(path))


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."
