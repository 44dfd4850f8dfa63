"""Workload traces: JSON lines of arrival_s, input_tokens, output_tokens."""

from __future__ import annotations

import json
import math
from pathlib import Path

from stallscope.errors import InputError
from stallscope.runner.workload import OpenLoop, RequestSize


def read_trace(path: Path) -> OpenLoop:
    """Read a trace, in order of arrival. Raises InputError naming file and line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise InputError(f"cannot read the trace {path}: {reason}") from None
    lines = enumerate(text.splitlines(), start=1)
    arrivals = [_arrival(line, f"{path}:{number}") for number, line in lines if line.strip()]
    if not arrivals:
        raise InputError(f"{path}: the trace is empty; give one JSON object a line")
    arrivals.sort(key=lambda arrival: arrival[0])
    times, sizes = zip(*arrivals, strict=True)
    return OpenLoop(sizes, times)


def _arrival(line: str, where: str) -> tuple[int, RequestSize]:
    try:
        fields = json.loads(line)
    except (json.JSONDecodeError, RecursionError):
        raise InputError(f"{where}: not a JSON object") from None
    if not isinstance(fields, dict):
        raise InputError(f"{where}: not a JSON object")
    size = RequestSize(
        _count(fields, "input_tokens", where), _count(fields, "output_tokens", where)
    )
    seconds = fields.get("arrival_s")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise InputError(f"{where}: arrival_s must be a number of seconds, not {seconds!r}")
    if not (math.isfinite(seconds) and seconds >= 0):
        raise InputError(f"{where}: arrival_s must be 0 or more, not {seconds!r}")
    return round(seconds * 1e9), size


def _count(fields: dict[str, object], name: str, where: str) -> int:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{where}: {name} must be a whole number of at least 1, not {value!r}")
    return value
