"""Where nvidia-smi has our counters: in its queries, in -q, and in -q -x.

Names as `nvidia-smi --help-query-gpu` lists them, with those of older drivers; for -q and -q -x the
path of sections that a value stands under, in lower case.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from stallscope.profiler.telemetry.rows import Counter

QUERY = (
    Counter("nvml_gpu_util", ("utilization.gpu",), "%"),
    Counter("nvml_memory_util", ("utilization.memory",), "%"),
    Counter("memory_used_bytes", ("memory.used",), "MiB"),
    Counter("memory_free_bytes", ("memory.free",), "MiB"),
    Counter("memory_reserved_bytes", ("memory.reserved",), "MiB"),
    Counter("memory_total_bytes", ("memory.total",), "MiB"),
    Counter("power_mw", ("power.draw", "power.draw.average", "power.draw.instant"), "W"),
    Counter("power_limit_mw", ("enforced.power.limit", "power.limit"), "W"),
    Counter("sm_clock_hz", ("clocks.current.sm", "clocks.sm"), "MHz"),
    Counter("sm_clock_max_hz", ("clocks.max.sm",), "MHz"),
    Counter("memory_clock_hz", ("clocks.current.memory", "clocks.mem"), "MHz"),
    Counter("memory_clock_max_hz", ("clocks.max.memory", "clocks.max.mem"), "MHz"),
    Counter("temperature_c", ("temperature.gpu",), "C"),
    Counter(
        "clock_event_reasons",
        ("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
        "1",
    ),
    Counter("process_memory_bytes", ("used_gpu_memory", "used_memory"), "MiB"),
)
TEXT = (
    Counter("nvml_gpu_util", ("utilization/gpu",), "%"),
    Counter("nvml_memory_util", ("utilization/memory",), "%"),
    Counter("memory_used_bytes", ("fb memory usage/used", "memory usage/used"), "MiB"),
    Counter("memory_free_bytes", ("fb memory usage/free", "memory usage/free"), "MiB"),
    Counter("memory_reserved_bytes", ("fb memory usage/reserved",), "MiB"),
    Counter("memory_total_bytes", ("fb memory usage/total", "memory usage/total"), "MiB"),
    Counter(
        "power_mw",
        (
            "gpu power readings/power draw",
            "gpu power readings/average power draw",
            "gpu power readings/instantaneous power draw",
            "power readings/power draw",
        ),
        "W",
    ),
    Counter(
        "power_limit_mw",
        (
            "gpu power readings/current power limit",
            "power readings/enforced power limit",
            "power readings/power limit",
        ),
        "W",
    ),
    Counter("sm_clock_hz", ("clocks/sm",), "MHz"),
    Counter("sm_clock_max_hz", ("max clocks/sm",), "MHz"),
    Counter("memory_clock_hz", ("clocks/memory",), "MHz"),
    Counter("memory_clock_max_hz", ("max clocks/memory",), "MHz"),
    Counter("temperature_c", ("temperature/gpu current temp", "temperature/gpu"), "C"),
    Counter("pcie_tx_bytes_per_s", ("pci/tx throughput",), "KB/s"),
    Counter("pcie_rx_bytes_per_s", ("pci/rx throughput",), "KB/s"),
)
XML = (
    Counter("nvml_gpu_util", ("utilization/gpu_util",), "%"),
    Counter("nvml_memory_util", ("utilization/memory_util",), "%"),
    Counter("memory_used_bytes", ("fb_memory_usage/used", "memory_usage/used"), "MiB"),
    Counter("memory_free_bytes", ("fb_memory_usage/free", "memory_usage/free"), "MiB"),
    Counter("memory_reserved_bytes", ("fb_memory_usage/reserved",), "MiB"),
    Counter("memory_total_bytes", ("fb_memory_usage/total", "memory_usage/total"), "MiB"),
    Counter(
        "power_mw",
        (
            "gpu_power_readings/power_draw",
            "gpu_power_readings/average_power_draw",
            "gpu_power_readings/instant_power_draw",
            "power_readings/power_draw",
        ),
        "W",
    ),
    Counter(
        "power_limit_mw",
        (
            "gpu_power_readings/current_power_limit",
            "power_readings/enforced_power_limit",
            "power_readings/power_limit",
        ),
        "W",
    ),
    Counter("sm_clock_hz", ("clocks/sm_clock",), "MHz"),
    Counter("sm_clock_max_hz", ("max_clocks/sm_clock",), "MHz"),
    Counter("memory_clock_hz", ("clocks/mem_clock",), "MHz"),
    Counter("memory_clock_max_hz", ("max_clocks/mem_clock",), "MHz"),
    Counter("temperature_c", ("temperature/gpu_temp",), "C"),
    Counter("pcie_tx_bytes_per_s", ("pci/tx_util",), "KB/s"),
    Counter("pcie_rx_bytes_per_s", ("pci/rx_util",), "KB/s"),
)
# nvmlClocksEventReason… by the last words of its flag's name, in any of the three spellings.
_REASONS: Mapping[str, int] = {
    "gpu idle": 0x1,
    "idle": 0x1,
    "applications clocks setting": 0x2,
    "sw power cap": 0x4,
    "hw slowdown": 0x8,
    "sync boost": 0x10,
    "sw thermal slowdown": 0x20,
    "hw thermal slowdown": 0x40,
    "hw power brake slowdown": 0x80,
    "display clock setting": 0x100,
    "display clocks setting": 0x100,
}
_SECTIONS = tuple(
    f"{stem}{end}"
    for stem in ("clocks_event_reasons", "clocks_throttle_reasons")
    for end in (".", "/", "/clocks_event_reason_", "/clocks_throttle_reason_")
)


def reasons_mask(cells: Mapping[str, str]) -> float | None:
    """Return the mask of reasons for slowed clocks from its flags; None where none is told."""
    mask, is_told = 0, False
    for path, bit in _reasons(tuple(cells)):
        word = cells[path].strip().lower()
        if word in ("active", "not active"):
            is_told = True
            mask |= bit if word == "active" else 0
    return float(mask) if is_told else None


@lru_cache(maxsize=256)  # a file has the same few columns in every row
def _reasons(paths: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    return tuple((path, bit) for path in paths if (bit := _reason(path)) is not None)


def _reason(path: str) -> int | None:
    path = path.replace(" ", "_")
    section = max((s for s in _SECTIONS if path.startswith(s)), key=len, default=None)
    if section is None:
        return None
    return _REASONS.get(path.removeprefix(section).split("/")[-1].replace("_", " "))
