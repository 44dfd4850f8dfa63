"""The GPU that a log names: what collects an environment, `nvidia-smi -L` and llama.cpp print."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stallscope.profiler.known_devices import known_device
from stallscope.profiler.spec import DeviceSpec

MARKS = (": NVIDIA ", ": AMD Instinct")
# "GPU 1: NVIDIA L4", "GPU 0: NVIDIA L4 (UUID: …)", "  Device 0: NVIDIA L4, compute capability 8.9"
_NAMED = re.compile(
    r"^\s*(?:GPU|Device) \d{1,3}: ((?:NVIDIA|AMD Instinct) [\w .-]{1,60}?)"
    r"\s*(?:\(UUID: [^)]*\)|, compute capability .*)?$"
)


def named_in(line: str) -> str | None:
    """Return the name of the GPU that a line tells."""
    found = _NAMED.match(line.rstrip()) if any(mark in line for mark in MARKS) else None
    return found.group(1) if found is not None else None


def device_of(texts: Iterable[str]) -> DeviceSpec | None:
    """Return the figures of the one model that all GPUs named are of; None for several models.

    How many of them the server uses is not told.
    """
    names = {name for name in map(named_in, texts) if name is not None}
    return known_device(next(iter(names)), None) if len(names) == 1 else None
