"""Whether all that is known of the load was read once: the next moment may differ."""

from __future__ import annotations

from stallscope.profiler.capture import FRONTEND_CPU, Capture

_STANDS_NS = 25_000_000_000  # for that long it is a standstill, and no moment
_STILL = (
    "No figure of the engine changed from one reading to the next, its tokens neither: they are of "
    "one moment. A page that something keeps and serves again looks the same."
)
_NOTE = "The gauges were read once: whether it is like this for long needs a series of readings."


def is_one_reading(capture: Capture) -> bool:
    """Tell whether each engine's gauges are of one moment, repeated at most over its period."""
    if capture.steps or capture.requests:
        return False
    if is_still(capture):
        return True
    seen: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for s in capture.engine_samples:
        if s.name in ("waiting", "running"):
            seen.setdefault((s.engine, s.name), []).append((s.t_ns, s.value))
    return bool(seen) and all(
        len({t for t, _ in rows}) <= 2 and len({value for _, value in rows}) == 1
        for rows in seen.values()
    )


def is_still(capture: Capture) -> bool:
    """Tell whether requests run and several readings say the same of them, to the last token."""
    values: dict[tuple[str, str], set[float]] = {}
    for s in capture.engine_samples:
        values.setdefault((s.engine, s.name), set()).add(s.value)
    names = {name for _, name in values}
    times = [s.t_ns for s in capture.engine_samples]
    if "output_tokens_total" not in names or len(set(times)) < 2:
        return False
    runs = any(max(found) > 0 for (_, name), found in values.items() if name == "running")
    is_same = all(len(found) == 1 for (_, name), found in values.items() if name != FRONTEND_CPU)
    return runs and is_same and max(times) - min(times) < _STANDS_NS


def one_reading_note(capture: Capture) -> tuple[str, ...]:
    """Say that one reading is one moment, where its source gave it a length; pages say it."""
    if is_still(capture):
        return (_STILL,)
    has_length = len({s.t_ns for s in capture.engine_samples}) > 1
    return (_NOTE,) if has_length and is_one_reading(capture) else ()
