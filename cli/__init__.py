"""stallscope: why LLM inference is slow, what limits it, and what each fix would buy."""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

_PUBLIC = {
    "Capture": "stallscope.profiler.capture",
    "Recorder": "stallscope.profiler.recorder",
    "diagnose": "stallscope.analyzers.diagnose",
    "load_device": "stallscope.profiler.devices",
    "load_model": "stallscope.profiler.models",
    "read_capture": "stallscope.profiler.capture_file",
}

__all__ = ["__version__", *_PUBLIC]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
