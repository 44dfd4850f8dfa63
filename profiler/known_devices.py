"""Find what the driver calls a device in the device table."""

from __future__ import annotations

import re
from dataclasses import replace

from stallscope.profiler.devices import load_device
from stallscope.profiler.spec import DeviceSpec

# How CUDA and NVML call the devices of the table; other variants of a chip (NVL, laptops) must
# not match, nor a slice of one (MIG), nor a die of a module of two (MI250).
_NAMES = {
    r"\bT4$": "t4",
    r"\bV100-SXM2-16GB$": "v100-sxm2-16gb",
    r"\bV100-SXM2-32GB$": "v100-sxm2-32gb",
    r"\bV100-PCIE-16GB$": "v100-pcie-16gb",
    r"\bV100-PCIE-32GB$": "v100-pcie-32gb",
    r"\bA10$": "a10",
    r"\bA10G$": "a10g",
    r"\bA30$": "a30",
    r"\bA40$": "a40",
    r"\bL4$": "l4",
    r"\bL40S$": "l40s",
    r"\bA100-SXM4-40GB$": "a100-sxm4-40gb",
    r"\bA100-SXM4-80GB$": "a100-sxm4-80gb",
    r"\bA100-PCIE-40GB$": "a100-pcie-40gb",
    r"\bA100 80GB PCIe$": "a100-pcie-80gb",
    r"\bH100 80GB HBM3$": "h100-sxm",
    r"\bH100 PCIe$": "h100-pcie",
    r"\bH200$": "h200-sxm",
    r"\bB200\b": "b200",
    r"\bGB10$": "gb10",
    r"\bRTX 3090$": "rtx-3090",
    r"\bRTX 3090 Ti$": "rtx-3090-ti",
    r"\bRTX 4080$": "rtx-4080",
    r"\bRTX 4090$": "rtx-4090",
    r"\bRTX 5080$": "rtx-5080",
    r"\bRTX 5090$": "rtx-5090",
    r"\bMI210$": "mi210",
    r"\bMI300X( OAM)?$": "mi300x",
    r"\bMI355X( OAM)?$": "mi355x",
}


def table_name(driver_name: str) -> str | None:
    """Return the device table's name for what the driver calls a device, if it is in the table."""
    if " MIG " in driver_name:
        return None
    found = (name for pattern, name in _NAMES.items() if re.search(pattern, driver_name))
    return next(found, None)


def known_device(driver_name: str, memory_bytes: int | None) -> DeviceSpec | None:
    """Return the table's figures for a device, if any, with its true memory size."""
    name = table_name(driver_name)
    if name is None:
        return None
    spec = load_device(name)
    return spec if memory_bytes is None else replace(spec, memory_bytes=memory_bytes)
