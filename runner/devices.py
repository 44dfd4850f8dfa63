"""Which device a run is on, and what is known of it."""

from __future__ import annotations

import re
from dataclasses import replace

from stallscope.errors import UsageError
from stallscope.profiler.devices import load_device
from stallscope.profiler.spec import DeviceSpec
from stallscope.runner.machine import cpu_name, device_memory_bytes

# How CUDA calls the devices of the table; other variants of a chip (PCIe, NVL) must not match.
_CUDA_NAMES = {
    r"\bT4\b": "t4",
    r"\bA10\b": "a10",
    r"\bA10G\b": "a10g",
    r"\bL4\b": "l4",
    r"\bL40S\b": "l40s",
    r"\bA100-SXM4-40GB\b": "a100-sxm4-40gb",
    r"\bA100-SXM4-80GB\b": "a100-sxm4-80gb",
    r"\bH100 80GB HBM3\b": "h100-sxm",
    r"\bH200$": "h200-sxm",
    r"\bB200\b": "b200",
    r"\bGB10\b": "gb10",
    r"\bRTX 3090$": "rtx-3090",
    r"\bRTX 4090$": "rtx-4090",
}


def choose_device(asked: str) -> str:
    """Return "cpu" or "cuda". Raises UsageError where CUDA is asked for and absent."""
    import torch

    has_cuda = torch.cuda.is_available()
    if asked == "cuda" and not has_cuda:
        raise UsageError("--device cuda: torch sees no CUDA device here; choose auto or cpu")
    return "cuda" if has_cuda and asked != "cpu" else "cpu"


def table_name(cuda_name: str) -> str | None:
    """Return the device table's name for what CUDA calls a device, if it is in the table."""
    found = (name for pattern, name in _CUDA_NAMES.items() if re.search(pattern, cuda_name))
    return next(found, None)


def known_device(device: str) -> DeviceSpec | None:
    """Return the table's figures for the device at hand, if any, with its true memory size."""
    if device == "cpu":
        return None
    import torch

    name = table_name(torch.cuda.get_device_name())
    if name is None:
        return None
    return replace(load_device(name), memory_bytes=device_memory_bytes(device)[0])


def device_title(device: str) -> str:
    """Return the name of the device at hand."""
    if device == "cpu":
        return cpu_name()
    import torch

    return torch.cuda.get_device_name()
