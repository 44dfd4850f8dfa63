"""Which GPU CUDA calls cuda:N: its environment's rules, applied to what NVML lists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stallscope.profiler.nvml.failures import Unavailable

# From this driver on a process may use an instance of each of several GPU instances, and whole
# GPUs beside them; before, one instance and nothing else (NVIDIA, MIG user guide).
_MANY_INSTANCES_DRIVER = 570


@dataclass(frozen=True, slots=True)
class Instance:
    """A MIG compute instance."""

    uuid: str
    name: str
    gpu_instance: int
    compute_instance: int
    handle: Any = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as NVML lists it, with its MIG instances where it is partitioned."""

    uuid: str
    name: str
    pci_bus_id: str
    instances: tuple[Instance, ...] = ()
    handle: Any = None
    is_partitioned: bool = False


@dataclass(frozen=True, slots=True)
class CudaDevice:
    """A device that CUDA enumerates: a whole GPU, or an instance of one."""

    gpu: Gpu
    instance: Instance | None = None


def cuda_devices(
    gpus: Sequence[Gpu], environment: Mapping[str, str], *, driver: int
) -> tuple[CudaDevice, ...]:
    """Return what CUDA enumerates, in its order; `driver` is the major version.

    Raises Unavailable where the order depends on how fast CUDA finds different GPUs to be.
    """
    value = environment.get("CUDA_VISIBLE_DEVICES")
    fixed = environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    if value is None:
        chosen = [d for gpu in _ordered(gpus, fixed) for d in _whole(gpu)]
    elif value.strip().startswith(("GPU-", "MIG-")):
        chosen = _by_uuid(value, gpus)
    else:
        chosen = _by_index(value, gpus, fixed)
    if driver < _MANY_INSTANCES_DRIVER:
        first = [device for device in chosen if device.instance is not None][:1]
        chosen = first or chosen
    return tuple(chosen)


def _ordered(gpus: Sequence[Gpu], fixed: bool) -> list[Gpu]:
    """Order GPUs as CUDA does: by bus, or the fastest first, which tells equals apart by bus."""
    if not fixed and len({gpu.name for gpu in gpus}) > 1:
        names = ", ".join(sorted({gpu.name for gpu in gpus}))
        raise Unavailable(
            f"CUDA orders different GPUs by speed ({names}), and NVML does not tell how",
            "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or choose GPUs by UUID in CUDA_VISIBLE_DEVICES",
        )
    return sorted(gpus, key=lambda gpu: gpu.pci_bus_id.upper())


def _whole(gpu: Gpu) -> list[CudaDevice]:
    """Return the GPU, or the first compute instance of each of its GPU instances."""
    if not gpu.is_partitioned:
        return [CudaDevice(gpu)]
    first: dict[int, Instance] = {}
    for instance in gpu.instances:
        first.setdefault(instance.gpu_instance, instance)
    return [CudaDevice(gpu, instance) for instance in first.values()]


def _by_index(value: str, gpus: Sequence[Gpu], fixed: bool) -> list[CudaDevice]:
    """CUDA reads as many digits as there are, stops at what is invalid, and refuses repetition."""
    indices: list[int] = []
    for word in value.split(","):
        found = re.match(r"\s*\+?(\d+)", word)
        if found is None or int(found[1]) >= len(gpus):
            break
        if int(found[1]) in indices:
            return []
        indices.append(int(found[1]))
    if not indices:
        return []
    ordered = _ordered(gpus, fixed)
    return [device for index in indices for device in _whole(ordered[index])]


def _by_uuid(value: str, gpus: Sequence[Gpu]) -> list[CudaDevice]:
    """The beginning of a UUID will do where it is one device's only; the rest is as for indices."""
    chosen: list[CudaDevice] = []
    for word in value.split(","):
        found = _with_uuid(word.strip(), gpus)
        if not found:
            break
        if any(device in chosen for device in found):
            return []
        chosen += found
    return chosen


def _with_uuid(word: str, gpus: Sequence[Gpu]) -> list[CudaDevice]:
    if word.startswith("GPU-"):
        matching = [gpu for gpu in gpus if gpu.uuid.startswith(word)]
        return _whole(matching[0]) if len(matching) == 1 else []
    if not word.startswith("MIG-"):
        return []
    instances = [
        CudaDevice(gpu, instance)
        for gpu in gpus
        for instance in gpu.instances
        if instance.uuid.startswith(word) or _old_name(gpu, instance) == word
    ]
    return instances if len(instances) == 1 else []


def _old_name(gpu: Gpu, instance: Instance) -> str:
    """Drivers before 470 know an instance by its GPU and its two numbers."""
    return f"MIG-{gpu.uuid}/{instance.gpu_instance}/{instance.compute_instance}"
