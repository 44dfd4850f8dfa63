"""GPU performance monitoring of Hopper and later: what units did between two readings."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from stallscope.profiler.evidence import NotObservable
from stallscope.profiler.nvml.device import NvmlDevice
from stallscope.profiler.nvml.failures import NOT_SUPPORTED, translated
from stallscope.profiler.nvml.readings import Reading

# nvmlGpmMetricId_t; all are shares of a peak in per cent.
METRICS: Mapping[str, int] = {
    "gpm_graphics_util": 1,
    "gpm_sm_util": 2,
    "gpm_sm_occupancy": 3,
    "gpm_integer_util": 4,
    "gpm_tensor_util": 5,
    "gpm_dram_util": 10,
    "gpm_fp64_util": 11,
    "gpm_fp32_util": 12,
    "gpm_fp16_util": 13,
}
UNITS: Mapping[str, str] = dict.fromkeys(METRICS, "fraction")

# NVIDIA: two samples must be more than 100 ms apart, for the counters are refreshed that often.
APART_S = 0.1
_NO_GPM = (
    "NVML says this GPU has no GPM, which came with Hopper",
    "profile a few steps with ncu or with nsys --gpu-metrics-devices",
)


class Gpm:
    """The GPM samples of one device; `close` frees them."""

    def __init__(self, nvml: Any, device: NvmlDevice) -> None:
        self._nvml = nvml
        self._device = device
        self._samples: list[Any] = []  # the older first
        self._taken_s = 0.0

    def probe(self) -> tuple[Reading | None, tuple[NotObservable, ...]]:
        """Take two samples; return a reading of the metrics that came, and why others did not."""
        try:
            # A MIG instance's own handle has no GPM: its GPU is asked, then sampled by instance.
            support = self._nvml.nvmlGpmQueryDeviceSupport(self._device.gpu_handle)
            if not support.isSupportedDevice:
                return None, _all_missing(*_NO_GPM)
            self._samples = [self._nvml.nvmlGpmSampleAlloc() for _ in range(2)]
            self._take()
            time.sleep(APART_S * 1.1)
            self._take()
            metrics = self._metrics(tuple(METRICS))
        except self._nvml.NVMLError as error:
            why = translated(error)
            reason, how = why.reason, _NO_GPM[1] if error.value == NOT_SUPPORTED else why.how
            return None, _all_missing(reason, how)
        missing = {name: code for name, (_, code) in metrics.items() if code}
        names = tuple(name for name in METRICS if name not in missing)
        reading = Reading(self._device.label, names, lambda: self._read(names)) if names else None
        return reading, tuple(self._missing(name, code) for name, code in missing.items())

    def close(self) -> None:
        """Free the samples."""
        while self._samples:
            self._nvml.nvmlGpmSampleFree(self._samples.pop())

    def _read(self, names: Sequence[str]) -> Sequence[float | None]:
        if time.perf_counter() - self._taken_s <= APART_S:
            return [None] * len(names)
        self._take()
        metrics = self._metrics(names)
        return [None if code else value / 100 for value, code in metrics.values()]

    def _take(self) -> None:
        oldest, newest = self._samples
        device = self._device
        if device.gpu_instance is None:
            self._nvml.nvmlGpmSampleGet(device.handle, oldest)
        else:
            self._nvml.nvmlGpmMigSampleGet(device.gpu_handle, device.gpu_instance, oldest)
        self._taken_s = time.perf_counter()
        self._samples = [newest, oldest]

    def _metrics(self, names: Sequence[str]) -> dict[str, tuple[float, int]]:
        """Return value in per cent and nvmlReturn_t, by name."""
        asked = self._nvml.c_nvmlGpmMetricsGet_t()
        asked.version = self._nvml.NVML_GPM_METRICS_GET_VERSION
        asked.numMetrics = len(names)
        asked.sample1, asked.sample2 = self._samples
        for i, name in enumerate(names):
            asked.metrics[i].metricId = METRICS[name]
        self._nvml.nvmlGpmMetricsGet(asked)
        found = (asked.metrics[i] for i in range(len(names)))
        return {
            name: (metric.value, metric.nvmlReturn)
            for name, metric in zip(names, found, strict=True)
        }

    def _missing(self, name: str, code: int) -> NotObservable:
        why = translated(self._nvml.NVMLError(code))
        return NotObservable(name, why.reason, why.how)


def _all_missing(reason: str, how: str) -> tuple[NotObservable, ...]:
    return tuple(NotObservable(name, reason, how) for name in METRICS)
