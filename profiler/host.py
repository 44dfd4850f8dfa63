"""Facts about the machine and about this program that a capture carries."""

from __future__ import annotations

import os
import platform

from stallscope import __version__


def tool_facts() -> dict[str, str]:
    """Return this program's name and version."""
    return {"name": "stallscope", "version": __version__}


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
