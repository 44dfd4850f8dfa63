"""What a .nsys-rep file says of itself in its first line."""

from __future__ import annotations

import re
from pathlib import Path

# "NVIDIA Tegra Profiler Report 2025@6@1@190-256136895201v0." in files of 2024.6 and 2025.6.
MAGIC = b"NVIDIA Tegra Profiler Report "
_VERSION = re.compile(re.escape(MAGIC) + rb"(\d+(?:@\d+)+)")


def is_report(path: Path) -> bool:
    """Say whether the file's first bytes are those of an nsys report."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def report_version(path: Path) -> str | None:
    """Return the version of the nsys that wrote a report, None where its first line has none."""
    try:
        with path.open("rb") as file:
            found = _VERSION.match(file.read(100))
    except OSError:
        return None
    return found[1].decode().replace("@", ".") if found else None
