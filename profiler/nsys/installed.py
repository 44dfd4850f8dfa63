"""The Nsight Systems to record and to convert with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stallscope.errors import MissingTool
from stallscope.profiler.doctor.surroundings import Surroundings
from stallscope.profiler.doctor.tools import NSYS, Found, ask_tool, find_tool, off_path


@dataclass(frozen=True, slots=True)
class Nsys:
    """An nsys that started and told its version, such as "2022.4.2.1"."""

    path: Path
    version: str


def find_nsys(place: Surroundings) -> Nsys:
    """Return the nsys on PATH, else the newest that an installer left beside it.

    Raises MissingTool, with how to get it, where there is none that answers.
    """
    found = find_tool(place, NSYS)
    if found.path is None and (beside := off_path(place, NSYS)) is not None:
        found = _better(found, ask_tool(place, NSYS, beside))
    if found.path is None or found.version is None:
        raise MissingTool(f"nsys cannot be used: {found.check.reason}; {found.check.fix}")
    return Nsys(found.path, found.version)


def _better(on_path: Found, beside: Found) -> Found:
    return beside if beside.version is not None else on_path
