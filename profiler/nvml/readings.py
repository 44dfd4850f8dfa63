"""The counters that one NVML call each gives, with their units."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stallscope.profiler.capture import DeviceSample
from stallscope.profiler.evidence import NotObservable
from stallscope.profiler.nvml.device import NvmlDevice
from stallscope.profiler.nvml.failures import translated

# Every counter sampled at the recorder's rate, GPM apart; docs/metrics.md lists the same.
UNITS: Mapping[str, str] = {
    "memory_used_bytes": "bytes",
    "memory_free_bytes": "bytes",
    "memory_reserved_bytes": "bytes",
    "memory_total_bytes": "bytes",
    "process_memory_bytes": "bytes",
    "nvml_gpu_util": "fraction",
    "nvml_memory_util": "fraction",
    "power_mw": "mW",
    "power_limit_mw": "mW",
    "energy_mj": "mJ",
    "sm_clock_hz": "Hz",
    "sm_clock_max_hz": "Hz",
    "memory_clock_hz": "Hz",
    "memory_clock_max_hz": "Hz",
    "temperature_c": "°C",
    "clock_event_reasons": "bitmask",
}
MEMORY = (
    "memory_used_bytes",
    "memory_free_bytes",
    "memory_total_bytes",
    "memory_reserved_bytes",
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One call and the samples it gives, in order; a None among them is not known just now."""

    device: str
    names: tuple[str, ...]
    read: Callable[[], Sequence[float | None]]

    def samples(self, t_ns: int, units: Mapping[str, str]) -> Iterator[DeviceSample]:
        """Read now. Raises the binding's error."""
        for name, value in zip(self.names, self.read(), strict=True):
            if value is not None and math.isfinite(value):
                yield DeviceSample(t_ns, self.device, name, float(value), units[name])


Choice = tuple[Reading, ...]  # the same counters in several ways, best first


def probe_choice(nvml: Any, choice: Choice) -> tuple[Reading | None, tuple[NotObservable, ...]]:
    """Return the first reading that answers, and the counters that it leaves out, with why."""
    first: Exception | None = None
    for reading in choice:
        try:
            reading.read()
        except nvml.NVMLError as error:
            first = first or error
            continue
        left = tuple(name for name in choice[0].names if name not in reading.names)
        return reading, _missing(left, first)
    return None, _missing(choice[0].names, first)


def _missing(names: Sequence[str], error: Exception | None) -> tuple[NotObservable, ...]:
    if error is None:
        return ()
    why = translated(error)
    return tuple(NotObservable(name, why.reason, why.how) for name in names)


def choices(nvml: Any, device: NvmlDevice) -> tuple[Choice, ...]:
    """Return what to read of a device; of a MIG instance's GPU what only the whole GPU has."""
    own, gpu = device.handle, device.gpu_handle
    return (
        _memory(nvml, device),
        (Reading(device.label, ("process_memory_bytes",), lambda: _process(nvml, own)),),
        (
            Reading(
                device.label,
                ("nvml_gpu_util", "nvml_memory_util"),
                lambda: _utilisation(nvml, own),
            ),
        ),
        *_of_gpu(nvml, gpu, device.gpu_label),
        *_clocks(nvml, gpu, device.gpu_label),
    )


def _memory(nvml: Any, device: NvmlDevice) -> Choice:
    """Memory with what the driver reserves told apart, else counted as used.

    The first is what nvidia-smi shows. Drivers before 510, and some on WSL, know the other only.
    """

    def told_apart() -> Sequence[float]:
        memory = nvml.nvmlDeviceGetMemoryInfo(device.handle, version=nvml.nvmlMemory_v2)
        return memory.used, memory.free, memory.total, memory.reserved

    def together() -> Sequence[float]:
        memory = nvml.nvmlDeviceGetMemoryInfo(device.handle)
        return memory.used, memory.free, memory.total

    return Reading(device.label, MEMORY, told_apart), Reading(device.label, MEMORY[:3], together)


def _process(nvml: Any, handle: Any) -> Sequence[float | None]:
    """This process's memory; NVML knows a container's processes by the host's numbers only."""
    mine = [
        process.usedGpuMemory
        for process in nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
        if process.pid == os.getpid()
    ]
    return (mine[0] if mine else None,)


def _utilisation(nvml: Any, handle: Any) -> Sequence[float]:
    rates = nvml.nvmlDeviceGetUtilizationRates(handle)
    return rates.gpu / 100, rates.memory / 100


def _of_gpu(nvml: Any, gpu: Any, label: str) -> tuple[Choice, ...]:
    """NVML's own units are milliwatts, millijoules and degrees."""

    def one(name: str, read: Callable[[], float]) -> Reading:
        return Reading(label, (name,), lambda: (read(),))

    return (
        (one("power_mw", lambda: nvml.nvmlDeviceGetPowerUsage(gpu)),),
        (one("power_limit_mw", lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(gpu)),),
        (one("energy_mj", lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu)),),
        (
            one(
                "temperature_c",
                lambda: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
            ),
        ),
        (
            one("clock_event_reasons", lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu)),
            # the same under the name it had before driver 535
            one("clock_event_reasons", lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)),
        ),
    )


def _clocks(nvml: Any, gpu: Any, label: str) -> Iterator[Choice]:
    for name, clock in (("sm", nvml.NVML_CLOCK_SM), ("memory", nvml.NVML_CLOCK_MEM)):
        for suffix, call in (
            ("clock_hz", nvml.nvmlDeviceGetClockInfo),
            ("clock_max_hz", nvml.nvmlDeviceGetMaxClockInfo),
        ):
            yield (Reading(label, (f"{name}_{suffix}",), _megahertz(call, gpu, clock)),)


def _megahertz(call: Callable[[Any, int], int], gpu: Any, clock: int) -> Callable[[], list[float]]:
    return lambda: [call(gpu, clock) * 1e6]
