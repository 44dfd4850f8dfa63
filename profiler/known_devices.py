"""Find what the driver calls a device in the device table."""

from __future__ import annotations

import re
from dataclasses import replace

from stallscope.profiler.devices import load_device
from stallscope.profiler.spec import DeviceSpec

# How CUDA and NVML call the devices of the table; other variants of a chip (PCIe, NVL) must not
# match, nor a slice of one (MIG).
_NAMES = {
    r"\bT4$": "t4",
    r"\bA10$": "a10",
    r"\bA10G$": "a10g",
    r"\bL4$": "l4",
    r"\bL40S$": "l40s",
    r"\bA100-SXM4-40GB$": "a100-sxm4-40gb",
    r"\bA100-SXM4-80GB$": "a100-sxm4-80gb",
    r"\bH100 80GB HBM3$": "h100-sxm",
    r"\bH200$": "h200-sxm",
    r"\bB200\b": "b200",
    r"\bGB10$": "gb10",
    r"\bRTX 3090$": "rtx-3090",
    r"\bRTX 4090$": "rtx-4090",
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
