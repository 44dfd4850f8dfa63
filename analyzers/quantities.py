"""Which sample may stand for which quantity, and what it can prove.

The table of "which number is which": a value answers both ways; a lower bound only proves "high",
an upper bound only "low". NVML's utilization.memory is in none of them: it is time in which the
memory controller was active, never bandwidth.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stallscope.analyzers.used_devices import BUSY_COUNTERS, unused_devices
from stallscope.profiler.capture import Capture, DeviceSample
from stallscope.profiler.evidence import Measure


@dataclass(frozen=True, slots=True)
class Quantity:
    """Sample names by role, best source first."""

    values: tuple[str, ...]
    lower_bounds: tuple[str, ...] = ()
    upper_bounds: tuple[str, ...] = ()


SM_THROUGHPUT = Quantity(
    values=("ncu_sm_throughput", "nsys_sm_issue"),
    lower_bounds=(
        "dcgm_pipe_active",
        "gpm_tensor_util",
        "gpm_fp32_util",
        "gpm_fp16_util",
        "gpm_integer_util",
        "nsys_tensor_active",
    ),
    upper_bounds=(
        "dcgm_sm_active",
        "gpm_sm_util",
        "trace_kernel_busy",
        "gpu_busy",
        "dcgm_gr_engine_active",
        "nvml_gpu_util",
    ),
)
DRAM_THROUGHPUT = Quantity(
    values=("ncu_dram_throughput", "nsys_dram_throughput", "gpm_dram_util", "dcgm_dram_active"),
)
GPU_BUSY = Quantity(values=BUSY_COUNTERS)
TENSOR_ACTIVE = Quantity(values=("gpm_tensor_util", "dcgm_tensor_active", "nsys_tensor_active"))

# DCGM's DRAM_ACTIVE tops out near 0.8 in practice, so it reads low against a scale of 1.
DCGM_DRAM_PEAK = 0.8


def device_means(capture: Capture, names: Iterable[str]) -> Mapping[str, float]:
    """Average fraction samples of the devices (not the host) by name.

    A run is not judged by a GPU that it does not use: on the CPU by none.
    """
    if capture.subject.device is not None and capture.subject.device.is_cpu:
        return {}
    wanted = set(names)
    seen = [s for s in capture.device_samples if s.name in wanted and s.device != "host"]
    unused = unused_devices(capture) if seen else frozenset()
    values: dict[str, list[float]] = {}
    for sample in seen:
        if sample.device not in unused:
            values.setdefault(sample.name, []).append(sample.value)
    return {name: statistics.fmean(v) for name, v in values.items()}


def _source(capture: Capture, name: str) -> str:
    devices = {s.device for s in samples_of(capture, name)}
    if len(devices) > 1:
        devices -= unused_devices(capture)
    return f"mean of {name} samples of {', '.join(sorted(devices))}"


def observe(capture: Capture, name: str, quantity: Quantity) -> tuple[Measure, ...]:
    """Return what was sampled of a quantity: its value if there is one, and its bounds."""
    names = (*quantity.values, *quantity.lower_bounds, *quantity.upper_bounds)
    means = device_means(capture, names)
    found: list[Measure] = []
    value = next((n for n in quantity.values if n in means), None)
    if value == "dcgm_dram_active":
        scaled = min(1.0, means[value] / DCGM_DRAM_PEAK)
        source = (
            f"{_source(capture, value)} ({means[value]:.3f}) ÷ its practical peak {DCGM_DRAM_PEAK}"
        )
        found.append(Measure(name, scaled, "fraction", "derived", source))
    elif value is not None:
        found.append(Measure(name, means[value], "fraction", "measured", _source(capture, value)))
    lower = max(
        (n for n in quantity.lower_bounds if n in means), key=means.__getitem__, default=None
    )
    if lower is not None:
        found.append(
            Measure(name, means[lower], "fraction", "bound", _source(capture, lower), side="lower")
        )
    upper = min(
        (n for n in quantity.upper_bounds if n in means), key=means.__getitem__, default=None
    )
    if upper is not None:
        found.append(
            Measure(name, means[upper], "fraction", "bound", _source(capture, upper), side="upper")
        )
    return tuple(found)


def is_impossible(measure: Measure) -> bool:
    """Tell whether a lower bound claims more than all: its model of the work is wrong."""
    return measure.side == "lower" and measure.value > 1.0


def is_above(measures: Iterable[Measure], line: float) -> tuple[bool | None, Measure | None]:
    """Tell whether a quantity is above a line, and by which measure; None when none can say."""
    measures = tuple(m for m in measures if not is_impossible(m))
    for m in measures:
        if m.side is None:
            return m.value > line, m
    for m in measures:
        if m.side == "lower" and m.value > line:
            return True, m
        if m.side == "upper" and m.value <= line:
            return False, m
    return None, None


def is_below(measures: Iterable[Measure], line: float) -> tuple[bool | None, Measure | None]:
    """Tell whether a quantity is below a line, and by which measure; None when none can say."""
    measures = tuple(m for m in measures if not is_impossible(m))
    for m in measures:
        if m.side is None:
            return m.value < line, m
    for m in measures:
        if m.side == "upper" and m.value < line:
            return True, m
        if m.side == "lower" and m.value >= line:
            return False, m
    return None, None


def samples_of(capture: Capture, name: str) -> tuple[DeviceSample, ...]:
    """Return one device counter's samples, the host's own left out."""
    return tuple(s for s in capture.device_samples if s.name == name and s.device != "host")


def used_samples(capture: Capture, name: str) -> tuple[DeviceSample, ...]:
    """Return one counter's samples of the devices that the run may have used."""
    found = samples_of(capture, name)
    unused = unused_devices(capture) if found else frozenset()
    return tuple(s for s in found if s.device not in unused)
