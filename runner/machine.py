"""What the host and a CUDA device say about themselves: names, caches, free memory."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from stallscope.profiler.cgroup import tightest_memory_limit

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def cpu_name() -> str:
    """Return the processor's model name with its logical core count."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    name = found[1].strip() if found else platform.processor() or platform.machine()
    return f"{name} ({psutil.cpu_count()} cores)"


def last_level_cache_bytes(caches: Path = _CACHES) -> int | None:
    """Return the size of the largest cache of the first core; None where the kernel hides it."""
    sizes = []
    for path in caches.glob("index*/size"):
        found = re.fullmatch(r"(\d+)([KMG])", path.read_text().strip())
        if found:
            sizes.append(int(found[1]) << {"K": 10, "M": 20, "G": 30}[found[2]])
    return max(sizes, default=None)


def host_memory_bytes() -> tuple[int, int]:
    """Return total and available memory, within the control group's limit where one is set."""
    memory = psutil.virtual_memory()
    limit = tightest_memory_limit()
    if limit is None:
        return memory.total, memory.available
    return (
        min(memory.total, limit.limit_bytes),
        min(memory.available, limit.available_bytes()),
    )


def device_memory_bytes(device: str) -> tuple[int, int]:
    """Return total and free memory of "cpu" or "cuda"."""
    if device == "cpu":
        return host_memory_bytes()
    import torch

    free, total = torch.cuda.mem_get_info()
    return total, free


def device_cache_bytes(device: str) -> int | None:
    """Return the size of the last-level cache of "cpu" or "cuda", where it is known."""
    if device == "cpu":
        return last_level_cache_bytes()
    import torch

    size: int = torch.cuda.get_device_properties(0).L2_cache_size
    return size
