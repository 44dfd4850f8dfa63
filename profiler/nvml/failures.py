"""Say in our words why NVML has no answer, and what would help."""

from __future__ import annotations

from collections.abc import Mapping

# nvmlReturn_t; the binding raises them as NVMLError with this value.
UNINITIALIZED = 1
NOT_SUPPORTED = 3
NO_PERMISSION = 4
DRIVER_NOT_LOADED = 9
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
VERSION_MISMATCH = 18
UNKNOWN = 999

# After these a device answers nothing until it is reset.
LOST = frozenset({GPU_IS_LOST, RESET_REQUIRED})
# Nor after these, where every counter returns them.
GONE = frozenset({UNINITIALIZED, DRIVER_NOT_LOADED, VERSION_MISMATCH, UNKNOWN})

_IN_CONTAINER = (
    "in a container: start it with --gpus all, and with utility in NVIDIA_DRIVER_CAPABILITIES"
)
_REASONS: Mapping[int, str] = {
    LIBRARY_NOT_FOUND: "NVML's library, libnvidia-ml.so.1, is not found",
    FUNCTION_NOT_FOUND: "NVML returned Function Not Found: the driver is older than this counter",
}
_HOW: Mapping[int, str] = {
    NOT_SUPPORTED: "observe it on a GPU and driver that have this counter",
    NO_PERMISSION: "run as a user who may read it, or ask the machine's administrator",
    DRIVER_NOT_LOADED: "load the driver: sudo modprobe nvidia; where nvidia-smi fails too, "
    f"install one that fits the kernel; {_IN_CONTAINER}",
    LIBRARY_NOT_FOUND: f"install the NVIDIA driver; {_IN_CONTAINER}",
    FUNCTION_NOT_FOUND: "update the NVIDIA driver",
    GPU_IS_LOST: "see the kernel's log for the Xid: sudo dmesg | grep -i xid; reboot",
    RESET_REQUIRED: "reset the GPU or reboot",
    VERSION_MISMATCH: "reboot, or reload the driver: it was updated while it was loaded",
    UNKNOWN: "see whether nvidia-smi works; in a container that lost its devices, restart it",
}


class Unavailable(Exception):
    """NVML, or the device asked for, cannot be observed."""

    def __init__(self, reason: str, how: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.how = how


def code_of(error: Exception) -> int:
    """Return the nvmlReturn_t of an error of the binding."""
    return int(getattr(error, "value", UNKNOWN))


def translated(error: Exception) -> Unavailable:
    """Translate an error of the binding."""
    code = code_of(error)
    reason = _REASONS.get(code, f"NVML returned {error}")
    return Unavailable(reason, _HOW.get(code, "see whether nvidia-smi shows it"))
