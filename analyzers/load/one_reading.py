"""Whether all that is known of the load was read once: the next moment may differ."""

from __future__ import annotations

from stallscope.profiler.capture import Capture

_NOTE = "The gauges were read once: whether it is like this for long needs a series of readings."


def is_one_reading(capture: Capture) -> bool:
    """Tell whether each engine's gauges are of one moment, repeated at most over its period."""
    if capture.steps or capture.requests:
        return False
    seen: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for s in capture.engine_samples:
        if s.name in ("waiting", "running"):
            seen.setdefault((s.engine, s.name), []).append((s.t_ns, s.value))
    return bool(seen) and all(
        len({t for t, _ in rows}) <= 2 and len({value for _, value in rows}) == 1
        for rows in seen.values()
    )


def one_reading_note(capture: Capture) -> tuple[str, ...]:
    """Say that one reading is one moment, where its source gave it a length; pages say it."""
    has_length = len({s.t_ns for s in capture.engine_samples}) > 1
    return (_NOTE,) if has_length and is_one_reading(capture) else ()
