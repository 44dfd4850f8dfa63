"""The official NVML binding, found to be it before it is imported."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from stallscope.profiler.nvml.failures import Unavailable, translated

OFFICIAL = "nvidia-ml-py"
_REINSTALL = f"pip install --force-reinstall {OFFICIAL}"


def open_nvml() -> Any:
    """Return the binding with NVML initialised; whoever opens it calls its nvmlShutdown once.

    Raises Unavailable.
    """
    refuse_foreign_binding()
    import pynvml  # type: ignore[import-untyped]

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise translated(error) from None
    return pynvml


def refuse_foreign_binding() -> None:
    """Raise Unavailable unless `import pynvml` would bring the file of nvidia-ml-py.

    Up to version 11 the distribution `pynvml` had a package of this name, which hides the official
    module and reads newer drivers' structures with an old layout. From 12 on it only depends on it.
    """
    found = importlib.util.find_spec("pynvml")
    if found is None or found.origin is None:
        raise Unavailable(f"{OFFICIAL} is not installed", f"pip install {OFFICIAL}")
    origin = Path(found.origin).resolve()
    if origin in _files_of(OFFICIAL):
        return
    raise Unavailable(*_foreign(origin))


def _files_of(distribution: str) -> set[Path]:
    from importlib import metadata  # 15 ms that only who samples a GPU pays

    try:
        files = metadata.distribution(distribution).files or []
    except metadata.PackageNotFoundError:
        return set()
    names = ("pynvml.py", "pynvml/__init__.py")
    return {Path(str(file.locate())).resolve() for file in files if file.as_posix() in names}


def _foreign(origin: Path) -> tuple[str, str]:
    from importlib import metadata

    try:
        old = metadata.version("pynvml")
    except metadata.PackageNotFoundError:
        reason = f"the module pynvml is not {OFFICIAL}'s: {origin}"
        return reason, f"remove or rename {origin}, then: {_REINSTALL}"
    reason = f"the deprecated package pynvml {old} hides {OFFICIAL}, NVIDIA's own binding"
    return reason, f"pip uninstall --yes pynvml && {_REINSTALL}"
