"""Traffic over PCIe, read once a second: the call that every driver has takes 20 ms a direction."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stallscope.profiler.capture import DeviceSample, Event
from stallscope.profiler.evidence import NotObservable
from stallscope.profiler.nvml.binding import open_nvml
from stallscope.profiler.nvml.device import NvmlDevice
from stallscope.profiler.nvml.failures import NOT_SUPPORTED
from stallscope.profiler.nvml.group import ReadingGroup
from stallscope.profiler.nvml.readings import Reading

HZ = 1.0
# "tx" is from the GPU to the host.
UNITS: Mapping[str, str] = {"pcie_tx_bytes_per_s": "B/s", "pcie_rx_bytes_per_s": "B/s"}

# NVML_FI_DEV_PCIE_COUNT_TX_BYTES and …RX_BYTES, which bindings before 12.560 do not name.
_COUNTERS = (197, 198)
_KB = 1000  # NVML says "KB/s"


class PcieSampler:
    """Samples one device's traffic: from its byte counters where it has them."""

    def __init__(self, device: NvmlDevice) -> None:
        self.name = f"NVML PCIe {device.cuda_name}"
        self._device = device
        self._group: ReadingGroup | None = None
        self._shut: Callable[[], None] | None = None

    def probe(self) -> tuple[NotObservable, ...]:
        """Open NVML and find the way that this driver has."""
        nvml, device, names = open_nvml(), self._device, tuple(UNITS)
        self._shut = nvml.nvmlShutdown
        self._group = ReadingGroup(nvml, UNITS)
        counters = ByteCounters(nvml, device.gpu_handle)
        return self._group.add_first(
            (
                Reading(device.gpu_label, names, counters.rates),
                Reading(device.gpu_label, names, lambda: _throughput(nvml, device.gpu_handle)),
            )
        )

    def sample(self, t_ns: int) -> tuple[DeviceSample | Event, ...]:
        """Read both directions."""
        return () if self._group is None else tuple(self._group.sample(t_ns))

    def close(self) -> tuple[NotObservable, ...]:
        """Give NVML back."""
        if self._shut is not None:
            self._shut()
        return ()


class ByteCounters:
    """Bytes since the driver was loaded, turned into bytes a second since the last reading."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._last: tuple[float, Sequence[int]] | None = None

    def rates(self) -> Sequence[float | None]:
        """Return both rates; none at first, nor of a counter that began again at 0."""
        values = [
            self._value(v) for v in self._nvml.nvmlDeviceGetFieldValues(self._handle, _COUNTERS)
        ]
        now_s = time.perf_counter()
        last, self._last = self._last, (now_s, values)
        if last is None:
            return [None] * len(values)
        elapsed_s = max(1e-9, now_s - last[0])
        moved = (new - old for new, old in zip(values, last[1], strict=True))
        return [count / elapsed_s if count >= 0 else None for count in moved]

    def _value(self, field: Any) -> int:
        nvml = self._nvml
        if field.nvmlReturn:
            raise nvml.NVMLError(field.nvmlReturn)
        if field.valueType == nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG:
            return int(field.value.ullVal)
        if field.valueType == nvml.NVML_VALUE_TYPE_UNSIGNED_LONG:
            return int(field.value.ulVal)
        # 32 bits wrap several times a second on a busy link: no rate can be told from them.
        raise nvml.NVMLError(NOT_SUPPORTED)


def _throughput(nvml: Any, handle: Any) -> Sequence[float]:
    directions = (nvml.NVML_PCIE_UTIL_TX_BYTES, nvml.NVML_PCIE_UTIL_RX_BYTES)
    return [nvml.nvmlDeviceGetPcieThroughput(handle, way) * _KB for way in directions]
