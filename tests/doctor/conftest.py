"""Machines for doctor to look at."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from doctor_place import HERE, LIGHT, Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty machine: nothing on PATH, nothing in /proc and /sys, packages that load at once."""
    made = Place(tmp_path)
    made.root.mkdir()
    made.bin.mkdir()
    made.install(LIGHT)
    return made


@pytest.fixture
def nvml(place: Place, compiler: str) -> Any:
    """Build an NVML that answers as the definitions say, where the loader finds it."""

    def build(**definitions: object) -> None:
        folder = place.folder / "lib"
        folder.mkdir()
        library = folder / "libnvidia-ml.so.1"
        defined = [f"-D{name}={value}" for name, value in definitions.items()]
        command = [compiler, "-shared", "-fPIC", "-w", *defined, "-o", str(library)]
        subprocess.run([*command, str(HERE / "nvml_stub.c")], check=True)
        place.environ["LD_LIBRARY_PATH"] = str(folder)
        place.environ["NVML_CALLS"] = str(place.folder / "calls")

    return build


@pytest.fixture
def compiled(compiler: str) -> Any:
    """Build a program that prints one line."""

    def build(path: Path, prints: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        command = [compiler, f'-DVERSION="{prints}"', "-o", str(path), str(HERE / "tool_stub.c")]
        subprocess.run(command, check=True)
        return path

    return build
