"""Sample a GPU through NVML, at the recorder's rate and on a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from stallscope.profiler.capture import DeviceSample, Event
from stallscope.profiler.evidence import NotObservable
from stallscope.profiler.nvml import gpm, pcie, readings
from stallscope.profiler.nvml.binding import open_nvml
from stallscope.profiler.nvml.clock_events import ClockEvents
from stallscope.profiler.nvml.device import NvmlDevice, cuda_index, find_device
from stallscope.profiler.nvml.failures import Unavailable
from stallscope.profiler.nvml.group import ReadingGroup

UNITS: Mapping[str, str] = {**readings.UNITS, **gpm.UNITS}
_PROCESS = "process_memory_bytes"
_NEVER_LISTED = (
    "NVML never listed this process by its number",
    "run outside a container, or in one that has the host's process numbers (--pid=host)",
)


class NvmlSampler:
    """Reads a device's counters: each probed once, then sampled or said to be not observable.

    NVML is opened here, so that the device is known before the first sample: `device` is None where
    there is none, and then `probe` gives the one reason for every counter.
    """

    def __init__(self, device: str = "cuda:0") -> None:
        self.name = f"NVML cuda:{cuda_index(device)}"
        self.device: NvmlDevice | None = None
        self._nvml: Any = None
        self._why: Unavailable | None = None
        self._gpm: gpm.Gpm | None = None
        self._seen: set[str] = set()
        self._clock_events = ClockEvents()
        try:
            self._nvml = open_nvml()
            self._group = ReadingGroup(self._nvml, UNITS)
            self.device = find_device(self._nvml, device)
        except Unavailable as why:
            self._why = why

    def probe(self) -> Iterator[NotObservable]:
        """Read each counter once; keep what answers and yield the rest with NVML's reason."""
        if self._why is not None:
            for name in (*UNITS, *pcie.UNITS):
                yield NotObservable(name, self._why.reason, self._why.how)
        if self.device is None:
            return
        for choice in readings.choices(self._nvml, self.device):
            yield from self._group.add_first(choice)
        self._gpm = gpm.Gpm(self._nvml, self.device)
        reading, missing = self._gpm.probe()
        self._group.add(reading)
        yield from missing

    def sample(self, t_ns: int) -> Iterator[DeviceSample | Event]:
        """Read what answered the probe. Raises SamplingStopped where the GPU is lost."""
        if self.device is None:
            return
        for row in self._group.sample(t_ns):
            yield row
            if isinstance(row, DeviceSample):
                self._seen.add(row.name)
                yield from self._clock_events.of(row)

    def close(self) -> tuple[NotObservable, ...]:
        """Give NVML back; return what answered the probe and yet never had a value."""
        nvml, self._nvml = self._nvml, None
        if nvml is None:
            return ()
        with suppress(nvml.NVMLError):  # of a GPU that is lost
            if self._gpm is not None:
                self._gpm.close()
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()
        if _PROCESS in self._group.names - self._seen:
            return (NotObservable(_PROCESS, *_NEVER_LISTED),)
        return ()
