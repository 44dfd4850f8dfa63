"""The GPUs of a server on this machine, sampled beside its pages."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from stallscope.profiler.capture import DeviceSample, EngineSample, Event
from stallscope.profiler.known_devices import known_device
from stallscope.profiler.nvml import pcie
from stallscope.profiler.nvml.device import NvmlDevice
from stallscope.profiler.nvml.sampler import NvmlSampler
from stallscope.profiler.samplers import SamplerThread
from stallscope.profiler.spec import DeviceSpec

_OURS = "process_memory_bytes"  # of the process that samples: the server is another
_HZ = 1.0
_HOW_ELSE = (
    "on the server's machine, run nvidia-smi --query-gpu=timestamp,index,name,"
    "utilization.gpu,memory.used,memory.total,power.draw,clocks.sm --format=csv -l 1 meanwhile, "
    "and diagnose what it prints"
)


class ServerGpus:
    """Samples every GPU that NVML lists until stopped; where there is none it says why.

    Nothing is sampled where `why_not` says that they are not the server's.
    """

    def __init__(self, clock: Callable[[], int], why_not: str | None = None) -> None:
        self.rows: list[DeviceSample | EngineSample | Event] = []
        self.devices: list[NvmlDevice] = []
        self._threads: list[SamplerThread] = []
        if why_not is not None:
            self.rows.append(_unseen(clock(), why_not, _HOW_ELSE))
            return
        for index in count():
            sampler = NvmlSampler(f"cuda:{index}")
            if sampler.device is None:
                if index == 0:
                    self._say_why(sampler, clock())
                sampler.close()
                break
            self.devices.append(sampler.device)
            for one in (sampler, pcie.PcieSampler(sampler.device)):
                self._threads.append(SamplerThread(one, self._put, clock=clock, hz=_HZ))

    def stop(self) -> None:
        """End all samplers."""
        while self._threads:
            self._threads.pop().stop()

    @property
    def spec(self) -> DeviceSpec | None:
        """Return the figures of the GPUs, where all are of one known kind."""
        kinds = {(d.name, d.memory_bytes) for d in self.devices}
        return known_device(*kinds.pop()) if len(kinds) == 1 else None

    def _put(self, row: DeviceSample | EngineSample | Event) -> None:
        is_ours = row.data.get("what") == _OURS if isinstance(row, Event) else row.name == _OURS
        if not is_ours:
            self.rows.append(row)

    def _say_why(self, sampler: NvmlSampler, t_ns: int) -> None:
        first = next(iter(sampler.probe()), None)
        if first is not None:
            self.rows.append(_unseen(t_ns, first.reason, first.how))


def _unseen(t_ns: int, reason: str, how: str) -> Event:
    data = {"what": "the GPU's counters", "reason": reason, "how": how}
    return Event(t_ns, "not_observable", None, data)
