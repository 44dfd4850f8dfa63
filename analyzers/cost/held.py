"""The calibration that a capture holds: what its own steps taught when it was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from stallscope.analyzers.cost.learnt_words import how_far_off, learnt_from
from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import CALIBRATION_FORM, Calibration

_COUNTS = ("captures", "steps", "form")
_TEXTS = ("at", "engine")


def held_calibration(capture: Capture) -> Calibration | None:
    """Return it; None where there is none, or none that this version made."""
    said = capture.meta.get("calibration")
    if not isinstance(said, Mapping) or said.get("form") != CALIBRATION_FORM:
        return None
    known = {f.name: said[f.name] for f in fields(Calibration) if said.get(f.name) is not None}
    runs = known.pop("runs", [])
    if not isinstance(runs, list) or not all(_is_sound(n, v) for n, v in known.items()):
        return None
    try:
        return Calibration(**known, runs=tuple(str(mark) for mark in runs))
    except TypeError:  # a part is missing
        return None


def _is_sound(name: str, value: object) -> bool:
    if name in _TEXTS:
        return isinstance(value, str)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    least = 1 if name in _COUNTS else 0
    return least <= value < 1e15 and (name not in (*_COUNTS, "sizes") or isinstance(value, int))


def held_note(capture: Capture) -> tuple[str, ...]:
    """Say what the capture holds, and that nothing here rests on it."""
    fitted = held_calibration(capture)
    if fitted is None:
        return ()
    return (
        f"The capture holds a calibration by its own steps ({learnt_from(fitted)}, "
        f"{how_far_off(fitted)}). Nothing here rests on it: a run agrees with itself.",
    )
