"""The run over time: windows, and where what limits changes."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.profiler.evidence import Provenance


@dataclass(frozen=True, slots=True)
class PhaseWindow:
    """What limits the steps of one phase in a window; `share` is of its step time."""

    phase: str
    bottleneck: str  # JSON "class"
    share: float


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the run with its own load and class.

    `limit` is the admission limit that held its queue, as in Verdict; `put_back` how many running
    requests were preempted in it, by the gauges; None where neither shows. `phases` are judged
    apart, by their own steps; empty where no step tells its phase.
    """

    from_s: float
    to_s: float
    bottleneck: str  # JSON "class"
    load: str
    limit: str | None = None
    put_back: float | None = None  # JSON "preemptions_inferred"
    phases: tuple[PhaseWindow, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """What held before or after a change; `text` says it in a clause."""

    bottleneck: str  # JSON "class"
    load: str
    limit: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that moved with a change: its median over the stretch before, and after."""

    name: str
    what: str  # in words
    unit: str
    before: float  # JSON "from"
    after: float  # JSON "to"
    provenance: Provenance
    source: str


@dataclass(frozen=True, slots=True)
class Change:
    """A point in time at which what limits changes, and the figures that moved there.

    `at_s` is known to `error_s`, the distance of the readings. `phase` is "all", or the phase whose
    own steps change. The first of `figures` is what the change is placed by.
    """

    at_s: float
    error_s: float
    phase: str
    before: State  # JSON "from"
    after: State  # JSON "to"
    figures: tuple[Figure, ...]
