"""What a Recorder is given, checked at the call: a wrong value must not fail in a later step."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import UnionType
from typing import Any, get_args, get_type_hints

from stallscope.profiler.capture import Request
from stallscope.profiler.capture_rows import encoded
from stallscope.profiler.counts import stored

MOST_HZ = 100  # NVML averages over a sixth of a second and more: faster tells nothing new
MOST_HZ_OF_ONE = 1000  # of a sampler whose cost the caller knows

_FEW_BRACKETS = 100
_NO_JSON = (TypeError, ValueError, OverflowError, RecursionError)
_REQUEST = {
    name: (
        str if hint is str else int,
        isinstance(hint, UnionType) and type(None) in get_args(hint),
    )
    for name, hint in get_type_hints(Request).items()
}


def check_hz(name: str, hz: float, most: int = MOST_HZ) -> float:
    """Return a rate of samples, from 0 to `most` a second."""
    if isinstance(hz, bool) or not isinstance(hz, (int, float)):
        raise TypeError(f"{name} must be a number of samples a second, not {hz!r:.40}")
    if not 0 <= hz <= most:
        raise ValueError(f"samples a second are from 0 (none) to {most}, not {name}={_rate(hz)}")
    return hz


def _rate(hz: float) -> str:
    return f"{hz:g}" if isinstance(hz, float) or hz < 1 << 64 else "a number of 65 bits and more"


def check_clock(clock: Callable[[], int]) -> None:
    """Raise TypeError unless the clock tells whole nanoseconds, as time.perf_counter_ns does."""
    now = clock() if callable(clock) else "a " + type(clock).__name__
    if type(now) is not int:
        raise TypeError(
            f"clock must return whole nanoseconds, as time.perf_counter_ns, not {now!r:.40}"
        )


def event_text(kind: str, request: int | None, data: dict[str, Any]) -> tuple[str, int | None, str]:
    """Return the event's kind, request and data in JSON, as of now."""
    kind = _text("kind", kind)
    return kind, request, _json(kind, data)


def request_row(row: Request) -> Request:
    """Return the row in plain ints; TypeError or ValueError name the field that is wrong."""
    if not isinstance(row, Request):
        raise TypeError(f"a request is a row of type Request, not {row!r:.40}")
    values: list[Any] = []
    for (name, (kind, optional)), value in zip(_REQUEST.items(), row, strict=True):
        if value is None and optional:
            values.append(None)
        elif kind is str:
            values.append(_text(name, value))
        else:
            values.append(stored(name, value))
    return Request(*values)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, not {value!r:.40}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} must be a text that UTF-8 can hold, not {value!r:.40}") from error
    return str(value)


def _json(kind: str, data: dict[str, Any]) -> str:
    try:
        text = encoded(data)
        if text.count("[") + text.count("{") > _FEW_BRACKETS:
            json.loads(text)  # nested too deep, it could not be read again
    except _NO_JSON as error:
        name = next((name for name in data if not _is_json(data[name])), "data")
        wrong = TypeError if isinstance(error, TypeError) else ValueError
        raise wrong(f"{name} of the event {kind} is not JSON: {error}") from None
    return text


def _is_json(value: object) -> bool:
    try:
        json.loads(encoded({"": value}))
    except _NO_JSON:
        return False
    return True
