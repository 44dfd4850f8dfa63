"""Where the doctor looks: the file system's root, the environment, and its patience."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`root` is where /proc, /sys and /opt are looked for; programs get `limit_s` to answer."""

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    limit_s: float = 20.0


def below(place: Surroundings, name: str) -> Path:
    """Return an absolute path as it is called below the root."""
    return place.root / name.lstrip("/")


def on_path(place: Surroundings, program: str) -> Path | None:
    """Return the program that a shell would start."""
    found = shutil.which(program, path=place.environ.get("PATH", os.defpath))
    return None if found is None else Path(found)


def elsewhere(place: Surroundings, *patterns: str) -> Iterator[Path]:
    """Yield what matches the absolute patterns, the newest version of each first."""
    for pattern in patterns:
        found = place.root.glob(pattern.lstrip("/"))
        yield from sorted(found, key=lambda path: _numbers(str(path)), reverse=True)


def version_in(text: str, after: str = "") -> str | None:
    """Return the first dotted number behind a word, such as "2022.4.2.1" behind "version"."""
    found = re.search(rf"{after}\s*(\d+(?:\.\d+)+)", text, re.IGNORECASE)
    return found[1] if found else None


def at_least(version: str, *least: int) -> bool:
    """Say whether a dotted version is as new as the numbers."""
    return _numbers(version)[: len(least)] >= least


def why(error: OSError) -> str:
    """Return what the system says, with the file it says it of."""
    return f"{error.filename}: {error.strerror or error}"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))
