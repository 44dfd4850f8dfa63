"""The device that a recording is about: its figures, its identity, and what samples it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stallscope.profiler.known_devices import known_device
from stallscope.profiler.nvml import pcie
from stallscope.profiler.nvml.device import cuda_index
from stallscope.profiler.nvml.sampler import NvmlSampler
from stallscope.profiler.samplers import Sampler
from stallscope.profiler.spec import DeviceSpec

Device = DeviceSpec | str | None


@dataclass(frozen=True, slots=True)
class RecordedDevice:
    """`facts` go into the capture's meta; each sampler has the most times a second it may run."""

    spec: DeviceSpec | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    samplers: tuple[tuple[Sampler, float | None], ...] = ()


def check_device(device: Device) -> None:
    """Raise ValueError for a name that no device has, TypeError for what is no name or spec."""
    if not isinstance(device, DeviceSpec | str | None):
        raise TypeError(
            f'device must be a name such as "cuda:0", a DeviceSpec or None, not {device!r:.60} '
            f"({type(device).__name__})"
        )
    if isinstance(device, str) and device != "cpu":
        cuda_index(device)


def open_device(device: Device) -> RecordedDevice:
    """Find a device by CUDA's name for it; "cpu" and a DeviceSpec are not sampled by NVML."""
    if device is None or device == "cpu":
        return RecordedDevice()
    if isinstance(device, DeviceSpec):
        return RecordedDevice(device)
    sampler = NvmlSampler(device)
    found = sampler.device
    if found is None:
        return RecordedDevice(samplers=((sampler, None),))
    return RecordedDevice(
        known_device(found.name, found.memory_bytes),
        {found.label: found.facts()},
        ((sampler, None), (pcie.PcieSampler(found), pcie.HZ)),
    )
