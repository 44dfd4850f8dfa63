"""Facts about the machine and about this program that a capture carries."""

from __future__ import annotations

import os
import platform
from importlib import metadata


def tool_facts() -> dict[str, str]:
    """Return this program's name and version."""
    try:
        version = metadata.version("stallscope")
    except metadata.PackageNotFoundError:  # run from a checkout that was not installed
        version = "unknown"
    return {"name": "stallscope", "version": version}


def host_facts() -> dict[str, str | int | None]:
    """Return the machine's name, system and number of CPUs."""
    return {
        "name": platform.node(),
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
    }
