"""Events of a Chrome trace as PyTorch's profiler (Kineto) writes them, decoded from JSON.

Only the fields that we use are decoded. Format: "Trace Event Format" (Google, 2016) and Kineto's
libkineto/src/output_json.cpp; older files spell some numbers as text, which is why types are wide.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import msgspec

Number = int | float | str | None


class Args(msgspec.Struct, gc=False):
    """What an event says beside its name and times; −1 or None where it does not say.

    Fields stand in the files' order: the decoder looks for each behind the last one found.
    """

    device: Number = -1
    stream: Number = -1
    correlation: Number = -1
    bytes: Number = -1
    graph: Number = msgspec.field(name="graph id", default=-1)
    graph_node: Number = msgspec.field(name="graph node id", default=-1)
    direction: str | None = None
    size: Number = -1
    name: str | None = None


class Event(msgspec.Struct, gc=False):
    """One event; `ts` and `dur` are microseconds, `ts` None where the event has none."""

    ph: str = ""
    cat: str | None = None
    name: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float | None = None
    dur: float | None = None
    args: Args | None = None


NO_ARGS = Args()
_EVENTS = msgspec.json.Decoder(list[Event])
# What C++ prints for infinities and what is not a number is no JSON.
_NO_NUMBER = re.compile(rb":\s*[-+]?(?:inf(?:inity)?|nan)(?=\s*[,}\]])", re.IGNORECASE)
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def decode(text: bytes | memoryview) -> list[Event] | None:
    """Decode events with commas between them; None where the text is not that."""
    try:
        return _EVENTS.decode(b"".join((b"[", text, b"]")))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def event_from(found: object) -> Event:
    """Return the event that a decoded value says, whatever types its fields have.

    Raises ValueError where the value is no object.
    """
    if not isinstance(found, dict):
        raise ValueError("an event is an object")
    args = found.get("args")
    return Event(
        ph=_text(found.get("ph")) or "",
        cat=_text(found.get("cat")),
        name=_text(found.get("name")) or "",
        ts=_number(found.get("ts")),
        dur=_number(found.get("dur")),
        pid=_identity(found.get("pid")),
        tid=_identity(found.get("tid")),
        args=_args(args) if isinstance(args, dict) else None,
    )


def repaired(text: bytes) -> bytes:
    """Replace what breaks such files' JSON: inf and nan, bad UTF-8, control characters."""
    text = _CONTROL.sub(b" ", _NO_NUMBER.sub(b": null", text))
    return text.decode("utf-8", "replace").encode()


def _text(value: object) -> str | None:
    return None if value is None else value if isinstance(value, str) else str(value)


def _number(value: object) -> float | None:
    if not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _identity(value: object) -> int | str | None:
    return value if isinstance(value, int | str) else _text(value)


def _args(values: Mapping[str, object]) -> Args:
    kept: dict[str, object] = {}
    for field, spelled in zip(Args.__struct_fields__, Args.__struct_encode_fields__, strict=True):
        value = values.get(spelled)
        if field in ("direction", "name"):
            kept[field] = value if isinstance(value, str) else None
        elif isinstance(value, int | float | str):
            kept[field] = value
    return Args(**kept)  # type: ignore[arg-type]
