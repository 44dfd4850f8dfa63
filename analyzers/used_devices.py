"""Which of the devices that were watched a run did not use."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from stallscope.profiler.capture import Capture, DeviceSample

# What tells how long a device was busy, best first; SM active is never more than that.
BUSY_COUNTERS = ("trace_kernel_busy", "gpu_busy", "dcgm_gr_engine_active", "nvml_gpu_util")
_BUSY = (*BUSY_COUNTERS, "dcgm_sm_active")
NEVER_BUSY = 0.05  # a desktop's own drawing keeps NVML's figure at a few per cent
# What a device does; it was busy at least as long.
_DOING = frozenset(
    {
        *("gpm_sm_util", "gpm_tensor_util", "gpm_dram_util"),
        *("gpm_fp16_util", "gpm_fp32_util", "gpm_integer_util"),
        *("dcgm_sm_active", "dcgm_tensor_active", "dcgm_pipe_active", "dcgm_dram_active"),
        *("nsys_sm_issue", "nsys_tensor_active", "nsys_dram_throughput"),
    }
)
_SURELY = 4 * NEVER_BUSY  # a device that works for so much of the steps is never that idle


def busy_by_device(capture: Capture) -> Mapping[str, tuple[DeviceSample, ...]]:
    """Return each device's samples of the best counter that tells how long it was busy."""
    wanted = frozenset(_BUSY)
    found: dict[str, dict[str, list[DeviceSample]]] = {}
    for sample in capture.device_samples:
        if sample.name in wanted and sample.device != "host":
            found.setdefault(sample.device, {}).setdefault(sample.name, []).append(sample)
    return {
        device: tuple(next(by_name[name] for name in _BUSY if name in by_name))
        for device, by_name in found.items()
    }


def unused_devices(capture: Capture) -> frozenset[str]:
    """Name the devices that were never busy while another was: the run did not use them.

    Where steps, tokens, or the counters of a device of which no busy time was sampled tell that the
    run's own device worked, all that never did are others'. A trace is of the run's own device,
    however idle.
    """
    seen = busy_by_device(capture)
    peaks = {device: max(s.value for s in rows) for device, rows in seen.items()}
    idle = frozenset(device for device, peak in peaks.items() if peak <= NEVER_BUSY)
    if not idle:
        return idle
    doing = _doing(capture)
    unused = idle - doing
    if doing - frozenset(peaks) or _device_worked(capture):
        return frozenset(d for d in unused if seen[d][0].name != "trace_kernel_busy")
    return unused if len(unused) < len(peaks) else frozenset()


def _doing(capture: Capture) -> frozenset[str]:
    return frozenset(
        s.device
        for s in capture.device_samples
        if s.name in _DOING and s.value > NEVER_BUSY and s.device != "host"
    )


def _device_worked(capture: Capture) -> bool:
    return _worked_in_steps(capture) or _made_tokens(capture)


def _worked_in_steps(capture: Capture) -> bool:
    steps = [s for s in capture.steps if not s.warmup and s.device_ns is not None]
    length_ns = sum(s.end_ns - s.start_ns for s in steps)
    return length_ns > 0 and sum(s.device_ns or 0 for s in steps) >= _SURELY * length_ns


def _made_tokens(capture: Capture) -> bool:
    """Tell whether requests ran most of the time and tokens were counted meanwhile."""
    made = [s.value for s in capture.engine_samples if s.name == "output_tokens_total"]
    running = [s.value for s in capture.engine_samples if s.name == "running"]
    if not made or not running or max(made) <= min(made):
        return False
    return statistics.median(running) >= 1.0
