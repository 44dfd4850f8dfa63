"""Sources written to files and read together, as the command line does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stallscope.profiler.capture import Capture
from stallscope.profiler.reading import read_inputs

S = 1_000_000_000


def read_together(
    folder: Path, files: Mapping[str, str], offsets: Mapping[str, float] | None = None
) -> Capture:
    """Write files in this order and read them together."""
    for name, text in files.items():
        (folder / name).write_text(text)
    stated = {folder / name: seconds for name, seconds in (offsets or {}).items()}
    return read_inputs([folder / name for name in files], stated)


def offsets_s(capture: Capture) -> list[float]:
    """Return what was added to each source's times, in seconds."""
    return [source.offset_ns / S for source in capture.sources]


def sentences(capture: Capture) -> list[str]:
    """Return what the capture says for people."""
    return [e.data["sentence"] for e in capture.events if e.kind == "check"]
