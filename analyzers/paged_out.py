"""Device memory that Windows moves to the host's without a word, while kernels wait for it.

Under WDDM an allocation beyond the device's memory succeeds, in the host's memory. A kernel that
reads it is resident all the time and waits for PCIe: the GPU is busy, and its own memory hardly is.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from stallscope.analyzers.result import Remedy, WontHelp
from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture

BUSY = 0.90  # NVML's utilisation: time with a kernel resident
MEMORY_IDLE = (
    0.10  # its time with the memory controller active; decode that reads VRAM has far more
)
_MOST_SURE = 0.6  # one thread block that spins, with memory nearly full by chance, looks the same
_NAMES = ("nvml_gpu_util", "nvml_memory_util", "memory_used_bytes", "memory_total_bytes")


@dataclass(frozen=True, slots=True)
class PagedOut:
    """Means of one device: time busy, time its memory worked, and the share of it in use."""

    device: str
    busy: float
    memory_busy: float
    used: float


def observe_paged_out(capture: Capture, t: Thresholds) -> PagedOut | None:
    """Return the device that waits so, the fullest first; None where none does, or nothing tells.

    Only where the file says that Windows runs the GPU by WDDM.
    """
    telemetry = capture.meta.get("telemetry")
    models = telemetry.get("driver_models") if isinstance(telemetry, Mapping) else None
    if not isinstance(models, list | tuple) or "WDDM" not in models:
        return None
    values: dict[str, dict[str, list[float]]] = {}
    for sample in capture.device_samples:
        if sample.name in _NAMES and sample.device != "host":
            values.setdefault(sample.device, {}).setdefault(sample.name, []).append(sample.value)
    found = []
    for device, by_name in values.items():
        if len(by_name) < len(_NAMES):
            continue
        busy, memory, used, total = (statistics.fmean(by_name[name]) for name in _NAMES)
        if busy >= BUSY and memory <= MEMORY_IDLE and total and used / total >= t.near_limit:
            found.append(PagedOut(device, busy, memory, used / total))
    return max(found, key=lambda one: one.used, default=None)


def decide_paged_out(capture: Capture, t: Thresholds) -> Decision | None:
    """Name the memory that did not suffice: its effect is that kernels wait for a link."""
    found = observe_paged_out(capture, t)
    if found is None:
        return None
    reason = (
        f"{found.device} has {percent(found.used)} of its memory in use and is busy "
        f"{percent(found.busy)} of the time, while its memory works {percent(found.memory_busy)}: "
        "under WDDM Windows puts what does not fit into system memory without an error, and "
        "kernels wait for it over PCIe"
    )
    quality = QUALITY["derived"]
    sure, finding = _MOST_SURE, "paged-out"
    busy = found.busy
    return Decision("capacity", busy, 0.0, None, 0.0, quality, reason, cap=sure, finding=finding)


def room_on_windows(capture: Capture, t: Thresholds) -> tuple[Remedy, ...]:
    """Say how to keep everything on the device, and to be told where it does not fit."""
    if observe_paged_out(capture, t) is None:
        return ()
    return (
        Remedy(
            "leave 1 GiB of the device's memory free: a shorter context, a KV cache of fewer bits, "
            "or fewer layers on the device",
            {
                "llama.cpp": "--ctx-size (lower), --cache-type-k q8_0 --cache-type-v q8_0, "
                "--n-gpu-layers (lower)",
                "vllm": "--gpu-memory-utilization (lower)",
            },
            None,
            "utilization.memory rises to what reading the weights takes, and tokens/s with it",
            cost="shorter contexts, or a quality to be checked",
        ),
        Remedy(
            "have an allocation that does not fit fail instead: in NVIDIA's control panel, CUDA - "
            "Sysmem Fallback Policy, Prefer No Sysmem Fallback",
            {},
            None,
            "the program ends with out of memory where it was slow",
            cost="what does not fit no longer runs at all",
        ),
    )


def useless_on_windows(capture: Capture, t: Thresholds) -> tuple[WontHelp, ...]:
    """Name what a GPU that is 100 % busy suggests."""
    if observe_paged_out(capture, t) is None:
        return ()
    return (WontHelp("a GPU with more FLOP/s", "kernels wait for PCIe, and compute nothing then"),)
