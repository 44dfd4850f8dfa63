"""Fields of events: anybody may record one with `Recorder.event`, so none can be relied on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stallscope.profiler.capture import Capture, Event

_TOO_LARGE = 2**63
# What an event of a kind must say to be of use; others are left out, and counted in a note.
_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "kv_pool": ("bytes", "tokens"),
    "kv_alloc": ("blocks", "bytes"),
    "kv_read": ("bytes",),
    "copy": ("bytes", "length_ns"),
    "trace_figure": ("value",),
}
_TEXTS: Mapping[str, tuple[str, ...]] = {
    "probe": ("probe",),
    "check": ("sentence",),
    "not_observable": ("what", "reason"),
    "trace_figure": ("name",),
}
_PROBE_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "stream": ("value",),
    "gemm": ("value",),
    "linear": ("rows", "time_s"),
}
_PROBE_TEXTS: Mapping[str, tuple[str, ...]] = {
    "stream": ("when",),
    "gemm": ("when",),
    "linear": ("op",),
}


def number(event: Event, name: str) -> float | None:
    """Return a number that an event carries, of a size that a column's can have."""
    value = event.data.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < _TOO_LARGE else None  # so that no sum of them overflows


def text(event: Event, name: str) -> str | None:
    """Return a text that an event carries."""
    value = event.data.get(name)
    return value if isinstance(value, str) and value else None


def lacking(event: Event) -> tuple[str, ...]:
    """Name what an event does not say and would have to."""
    probe = text(event, "probe") or "" if event.kind == "probe" else ""
    numbers = (*_NUMBERS.get(event.kind, ()), *_PROBE_NUMBERS.get(probe, ()))
    if event.kind == "kv_alloc" and number(event, "tokens") is not None:
        numbers = ("bytes",)  # a cache without blocks counts tokens
    texts = (*_TEXTS.get(event.kind, ()), *_PROBE_TEXTS.get(probe, ()))
    return (
        *(name for name in numbers if number(event, name) is None),
        *(name for name in texts if text(event, name) is None),
    )


def whole_events(capture: Capture, kind: str) -> Iterator[Event]:
    """Yield the events of a kind that say what they must."""
    return (e for e in capture.events if e.kind == kind and not lacking(e))


def notes(capture: Capture) -> tuple[str, ...]:
    """Say which events were left out."""
    counts: dict[tuple[str, str], int] = {}
    for event in capture.events:
        if missing := lacking(event):
            key = event.kind, " and ".join(missing)
            counts[key] = counts.get(key, 0) + 1
    return tuple(
        f"{count} {kind} event{'s' if count > 1 else ''} without {missing} left out."
        for (kind, missing), count in counts.items()
    )
