"""Facts about the machine and about this program that a capture carries."""

from __future__ import annotations

import os
import platform

import psutil  # type: ignore[import-untyped]

from stallscope import __version__
from stallscope.profiler.usable_cpus import usable_cores


def tool_facts() -> dict[str, str]:
    """Return this program's name and version."""
    return {"name": "stallscope", "version": __version__}


def host_facts() -> dict[str, str | int | float | None]:
    """Return the machine's name, system and number of CPUs.

    `counted_cpus` are those whose time the system counts: in a container often the whole machine's.
    `usable_cores` is how many cores this process may fill, by its affinity and its group's quota.
    """
    return {
        "name": platform.node(),
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "counted_cpus": _counted_cpus(),
        "usable_cores": usable_cores(),
    }


def _counted_cpus() -> int | None:
    try:
        return len(psutil.cpu_times(percpu=True))
    except (OSError, psutil.Error):  # a sandbox may hide the figures
        return None
