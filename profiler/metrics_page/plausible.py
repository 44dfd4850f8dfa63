"""Gauges that no engine can show: of another unit, or sums of what should not be added."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.profiler.capture import EngineSample

_FULL = 1.05  # a pool's use is rounded, and read while blocks change hands


def plausible(samples: Sequence[EngineSample]) -> tuple[list[EngineSample], str | None]:
    """Leave out fewer than no requests and more than the whole pool; say how much it was."""
    kept = [s for s in samples if can_be(s.name, s.value)]
    left = len(samples) - len(kept)
    if not left:
        return kept, None
    names = sorted({s.name for s in samples if not can_be(s.name, s.value)})
    said = "One value that cannot be was" if left == 1 else f"{left:,} values that cannot be were"
    return kept, f"{said} left out ({', '.join(names)}: below zero, or more than the whole pool)."


def can_be(name: str, value: float) -> bool:
    """Tell whether an engine can show this value at all."""
    return value >= 0 and not (name == "kv_used_fraction" and value > _FULL)
