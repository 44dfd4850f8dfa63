"""What plots draw."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepPoint:
    """A point of the timeline plot; seconds from the first step."""

    t_s: float
    duration_s: float
    phase: str
    kv_used: float | None  # fraction
    running: int | None
    waiting: int | None


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """A phase's place under the roof."""

    label: str
    intensity: float  # FLOP/B
    flops_per_s: float


@dataclass(frozen=True, slots=True)
class Roofline:
    """The roof (peak FLOP/s, bytes/s) and the run's points."""

    peak_flops: float
    peak_bytes_per_s: float
    kind: str  # "datasheet" or "achievable"
    points: tuple[RooflinePoint, ...]

    @property
    def ridge(self) -> float:
        """The intensity (FLOP/B) above which compute binds instead of memory."""
        return self.peak_flops / self.peak_bytes_per_s


@dataclass(frozen=True, slots=True)
class Series:
    """What plots need, at most 5,000 points a series."""

    timeline: tuple[StepPoint, ...] = ()
    roofline: Roofline | None = None
