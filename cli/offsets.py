"""`--offset SOURCE=±s`: how far the clocks of files are to be set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from stallscope.errors import UsageError


def offsets_of(values: Sequence[str], files: Sequence[str]) -> dict[Path, float]:
    """Return seconds by file; a file is named as it was given, or by its last part if that is one.

    Raises UsageError for anything else.
    """
    found: dict[Path, float] = {}
    if values and len(files) < 2:
        raise UsageError("--offset sets the clock of one of several files; only one is given")
    for value in values:
        name, sign, seconds = value.rpartition("=")
        if not sign or not name:
            raise UsageError(f"--offset {value}: say SOURCE=SECONDS, such as gpu.csv=-3600")
        path = _file(name, files)
        if path in found:
            raise UsageError(f"--offset {value}: {name} is set twice")
        found[path] = _seconds(value, seconds)
    return found


def _file(name: str, files: Sequence[str]) -> Path:
    matching = [f for f in files if f == name] or [f for f in files if Path(f).name == name]
    if len(matching) != 1:
        what = "several of the files are" if matching else "none of the files is"
        raise UsageError(f"--offset {name}: {what} called so; given are {', '.join(files)}")
    return Path(matching[0])


def _seconds(value: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or abs(seconds) > 1e10:
        raise UsageError(f"--offset {value}: {text!r} is no number of seconds")
    return seconds
