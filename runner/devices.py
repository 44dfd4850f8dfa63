"""Which device a run is on, and what is known of it."""

from __future__ import annotations

from stallscope.errors import UsageError
from stallscope.profiler.known_devices import known_device
from stallscope.profiler.spec import DeviceSpec
from stallscope.runner.machine import cpu_name, device_memory_bytes


def choose_device(asked: str) -> str:
    """Return "cpu" or "cuda". Raises UsageError where CUDA is asked for and absent."""
    import torch

    has_cuda = torch.cuda.is_available()
    if asked == "cuda" and not has_cuda:
        raise UsageError("--device cuda: torch sees no CUDA device here; choose auto or cpu")
    return "cuda" if has_cuda and asked != "cpu" else "cpu"


def table_device(device: str) -> DeviceSpec | None:
    """Return the table's figures for the device at hand, if any, with its true memory size."""
    if device == "cpu":
        return None
    import torch

    return known_device(torch.cuda.get_device_name(), device_memory_bytes(device)[0])


def device_title(device: str) -> str:
    """Return the name of the device at hand."""
    if device == "cpu":
        return cpu_name()
    import torch

    return torch.cuda.get_device_name()
