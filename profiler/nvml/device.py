"""The NVML handle of the device that CUDA calls cuda:N."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stallscope.profiler.nvml.failures import NO_PERMISSION, Unavailable, code_of, translated
from stallscope.profiler.nvml.visible import CudaDevice, Gpu, Instance, cuda_devices

_CUDA_NAME = re.compile(r"cuda(?::(\d+))?")


@dataclass(frozen=True, slots=True)
class NvmlDevice:
    """A device to sample; `gpu_handle` is the whole GPU's where `handle` is a MIG instance's."""

    cuda_name: str
    name: str
    uuid: str
    pci_bus_id: str
    handle: Any
    gpu_handle: Any
    gpu_name: str
    gpu_instance: int | None = None
    memory_bytes: int | None = None

    @property
    def label(self) -> str:
        """Name the device in samples."""
        return f"{self.cuda_name} {self.name}"

    @property
    def gpu_label(self) -> str:
        """Name the device whose clocks, power and links are sampled."""
        return self.label if self.gpu_instance is None else f"{self.gpu_name} (whole GPU)"

    def facts(self) -> dict[str, object]:
        """Return what identifies the device, as JSON."""
        return {"name": self.name, "uuid": self.uuid, "pci_bus_id": self.pci_bus_id}


def cuda_index(name: str) -> int:
    """Return N of "cuda:N", 0 of "cuda". Raises ValueError for another name."""
    found = _CUDA_NAME.fullmatch(name)
    if found is None:
        meant = name.strip().lower()
        hint = f'; write it "{meant}"' if meant == "cpu" or _CUDA_NAME.fullmatch(meant) else ""
        raise ValueError(f'a device is "cpu", "cuda" or "cuda:N", not {name!r:.60}{hint}')
    return int(found[1] or 0)


def find_device(nvml: Any, name: str, environment: Mapping[str, str] = os.environ) -> NvmlDevice:
    """Find the device that CUDA would call `name`. Raises Unavailable, or ValueError."""
    index = cuda_index(name)
    try:
        driver = int(nvml.nvmlSystemGetDriverVersion().split(".")[0])
        devices = cuda_devices(_gpus(nvml), environment, driver=driver)
        if index < len(devices):
            return _described(nvml, f"cuda:{index}", devices[index])
    except nvml.NVMLError as error:
        raise translated(error) from None
    raise Unavailable(*_nothing_there(index, len(devices), environment))


def _nothing_there(index: int, count: int, environment: Mapping[str, str]) -> tuple[str, str]:
    value = environment.get("CUDA_VISIBLE_DEVICES")
    if value is None:
        return (
            f"there is no cuda:{index}: NVML lists {count} for CUDA",
            "choose a device that is there",
        )
    return (
        f"there is no cuda:{index}: CUDA_VISIBLE_DEVICES={value!r} leaves {count}",
        "choose another device, or change CUDA_VISIBLE_DEVICES",
    )


def _gpus(nvml: Any) -> list[Gpu]:
    found = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            found.append(_gpu(nvml, nvml.nvmlDeviceGetHandleByIndex(index)))
        except nvml.NVMLError as error:
            if code_of(error) != NO_PERMISSION:  # CUDA does not see what it may not open
                raise
    return found


def _gpu(nvml: Any, handle: Any) -> Gpu:
    is_partitioned = _is_partitioned(nvml, handle)
    return Gpu(
        uuid=nvml.nvmlDeviceGetUUID(handle),
        name=nvml.nvmlDeviceGetName(handle),
        pci_bus_id=nvml.nvmlDeviceGetPciInfo(handle).busId,
        instances=tuple(_instances(nvml, handle)) if is_partitioned else (),
        handle=handle,
        is_partitioned=is_partitioned,
    )


def _is_partitioned(nvml: Any, handle: Any) -> bool:
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:  # not a GPU that can be
        return False
    return bool(current == nvml.NVML_DEVICE_MIG_ENABLE)


def _instances(nvml: Any, handle: Any) -> list[Instance]:
    found = []
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except nvml.NVMLError:  # an empty slot
            continue
        found.append(
            Instance(
                uuid=nvml.nvmlDeviceGetUUID(instance),
                name=nvml.nvmlDeviceGetName(instance),
                gpu_instance=nvml.nvmlDeviceGetGpuInstanceId(instance),
                compute_instance=nvml.nvmlDeviceGetComputeInstanceId(instance),
                handle=instance,
            )
        )
    return found


def _described(nvml: Any, cuda_name: str, device: CudaDevice) -> NvmlDevice:
    gpu, instance = device.gpu, device.instance
    own = gpu if instance is None else instance
    return NvmlDevice(
        cuda_name=cuda_name,
        name=own.name,
        uuid=own.uuid,
        pci_bus_id=gpu.pci_bus_id,
        handle=own.handle,
        gpu_handle=gpu.handle,
        gpu_name=gpu.name,
        gpu_instance=None if instance is None else instance.gpu_instance,
        memory_bytes=_memory_bytes(nvml, own.handle),
    )


def _memory_bytes(nvml: Any, handle: Any) -> int | None:
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    except nvml.NVMLError:
        return None
