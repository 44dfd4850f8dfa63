"""All checks, in groups, side by side: most of the time goes to waiting for other programs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from stallscope.profiler.doctor.counters import counter_checks
from stallscope.profiler.doctor.machine import (
    clock_check,
    governor_check,
    huge_pages_check,
    pressure_check,
)
from stallscope.profiler.doctor.nsys import nsys_checks
from stallscope.profiler.doctor.nvml import nvml_checks
from stallscope.profiler.doctor.packages import (
    matplotlib_check,
    nvtx_check,
    torch_check,
    transformers_check,
)
from stallscope.profiler.doctor.run_queue import run_queue_check
from stallscope.profiler.doctor.shares import container_check, cpu_check, memory_check
from stallscope.profiler.doctor.surroundings import Surroundings
from stallscope.profiler.evidence import Check, CheckGroup

Examination = Callable[[Surroundings], Check | tuple[Check, ...]]
_GROUPS: dict[str, tuple[Examination, ...]] = {
    "The GPU, while it runs": (nvml_checks,),
    "Traces and counters": (nsys_checks, counter_checks, nvtx_check),
    "Packages": (torch_check, transformers_check, matplotlib_check),
    "This machine": (
        huge_pages_check,
        pressure_check,
        run_queue_check,
        cpu_check,
        memory_check,
        governor_check,
        container_check,
    ),
}


def examine(place: Surroundings) -> tuple[CheckGroup, ...]:
    """Make every check."""
    clock = clock_check(place)  # first: the others would disturb what it measures
    with ThreadPoolExecutor(max_workers=8) as pool:
        pending = {
            title: [pool.submit(examination, place) for examination in examinations]
            for title, examinations in _GROUPS.items()
        }
        groups = {
            title: tuple(check for future in futures for check in _many(future.result()))
            for title, futures in pending.items()
        }
    groups["This machine"] = (*groups["This machine"], clock)
    return tuple(CheckGroup(title, checks) for title, checks in groups.items())


def _many(checks: Check | tuple[Check, ...]) -> tuple[Check, ...]:
    return (checks,) if isinstance(checks, Check) else checks
