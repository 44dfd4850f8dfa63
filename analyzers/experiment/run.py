"""One run of an experiment: its settings, its figures, and what it alone says of its limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stallscope.profiler.evidence import Provenance

Value = float | str


@dataclass(frozen=True, slots=True)
class Figure:
    """How fast a run was: a rate in something per second, or a time in seconds."""

    value: float
    unit: str
    provenance: Provenance
    source: str


@dataclass(frozen=True, slots=True)
class Run:
    """A run by the name its user gave it. `bottleneck` and `sentence` are its own verdict's."""

    name: str
    settings: Mapping[str, Value]
    figures: Mapping[str, Figure]
    bottleneck: str | None = None  # JSON "class"
    load: str | None = None
    sentence: str = ""
    notes: tuple[str, ...] = field(default=())


def differing(runs: tuple[Run, ...]) -> tuple[str, ...]:
    """Name the settings that every run states and that are not the same in all."""
    names = [n for n in runs[0].settings if all(n in run.settings for run in runs)]
    return tuple(n for n in names if len({run.settings[n] for run in runs}) > 1)
