"""NVML as the doctor sees it: initialise, versions, devices, shut down; nothing is ever set."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

_LIBRARY = "libnvidia-ml.so.1"


def look_at_nvml() -> dict[str, object]:
    """Return NVML's versions and devices, or why it does not answer."""
    import pynvml  # type: ignore[import-untyped]

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return {"error": str(error), "code": int(error.value), "loader": _loader_says()}
    try:
        return {
            "driver": _text(pynvml.nvmlSystemGetDriverVersion()),
            "nvml": _text(pynvml.nvmlSystemGetNVMLVersion()),
            "library": _loaded_library(),
            "devices": [_device(pynvml, i) for i in range(pynvml.nvmlDeviceGetCount())],
        }
    finally:
        pynvml.nvmlShutdown()


def _device(pynvml: Any, index: int) -> dict[str, object]:
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        name = _text(pynvml.nvmlDeviceGetName(handle))
    except pynvml.NVMLError as error:
        return {"index": index, "error": str(error)}
    return {"index": index, "name": name, **_gpm(pynvml, handle)}


def _gpm(pynvml: Any, handle: object) -> dict[str, object]:
    if not hasattr(pynvml, "nvmlGpmQueryDeviceSupport"):
        return {"gpm": None, "gpm_error": "this pynvml does not know GPM"}
    try:
        support = pynvml.nvmlGpmQueryDeviceSupport(handle)
    except pynvml.NVMLError as error:
        return {"gpm": None, "gpm_error": str(error)}
    return {"gpm": bool(support.isSupportedDevice)}


def _loader_says() -> str | None:
    """Return the dynamic loader's own words, which tell "not there" from "not usable"."""
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError as error:
        return str(error)
    return None


def _loaded_library() -> str | None:
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return None
    found = (line.split(maxsplit=5)[-1] for line in maps.splitlines() if "libnvidia-ml" in line)
    return next(found, None)


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
