"""Read a text as the file that it is of."""

from __future__ import annotations

from pathlib import Path

from stallscope.profiler.capture import Capture
from stallscope.profiler.reading import read_input

MIB = 2**20


def read(folder: Path, text: str | bytes) -> Capture:
    """Write a text to a file with a name that tells nothing, and read it."""
    file = folder / "input"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_input(file)


def values(capture: Capture) -> dict[str, list[tuple[int, str, float, str]]]:
    """Return the samples by device, as (time, name, value, unit) with values to nine digits."""
    found: dict[str, list[tuple[int, str, float, str]]] = {}
    for s in capture.device_samples:
        found.setdefault(s.device, []).append((s.t_ns, s.name, round(s.value, 9), s.unit))
    return {device: sorted(rows) for device, rows in found.items()}


def latest(capture: Capture) -> dict[str, dict[str, float]]:
    """Return each device's last value of each counter."""
    found: dict[str, dict[str, float]] = {}
    for s in capture.device_samples:
        found.setdefault(s.device, {})[s.name] = round(s.value, 9)
    return found


def missing(capture: Capture) -> dict[str, str]:
    """Return what is not observable, with its reason."""
    events = (e.data for e in capture.events if e.kind == "not_observable")
    return {data["what"]: data["reason"] for data in events}


def sentences(capture: Capture) -> list[str]:
    """Return what the reader found worth saying."""
    return [e.data["sentence"] for e in capture.events if e.kind == "check"]
