"""What a case is: an input in the form that its reporter had, and what may be said of it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Version:
    """How a case is told: its sizes and rates times `scale`, under other names, or without what
    misled people."""

    scale: float = 1.0
    is_renamed: bool = False
    has_distractor: bool = True

    def called(self, name: str) -> str:
        """Return a name, or another one that says nothing."""
        return f"site-{zlib.crc32(name.encode()) % 10_000}" if self.is_renamed else name


@dataclass(frozen=True, slots=True)
class Case:
    """A report: `build` writes its files and returns the arguments of `diagnose`.

    One of `accept` must be the class. Each of `says` (patterns) stands in the report, and none of
    `never` in its sentence or its remedies.
    """

    name: str
    accept: tuple[str, ...]
    build: Callable[[Path, Version], list[str]]
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


def write(folder: Path, name: str, text: str) -> str:
    """Write a file and return its path."""
    path = folder / name
    path.write_text(text)
    return str(path)


def stamp(second: float) -> str:
    """Return a time of day, counted from noon."""
    whole = int(second)
    return f"{12 + whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


VERSIONS = {
    "as-reported": Version(),
    "renamed": Version(is_renamed=True),
    "scaled": Version(scale=1.3),
    "without-distractor": Version(has_distractor=False),
}
