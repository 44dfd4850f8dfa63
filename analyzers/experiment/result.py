"""What a comparison of runs is: plain data that reports format and never compute on."""

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
    """A run by the name its user gave it. `bottleneck` and `sentence` are its own verdict's.

    `readings` were seen while it ran and set by nobody: they tell no runs apart. `cut_note` says
    when and how a run was cut whose figures tell of a part only.
    """

    name: str
    settings: Mapping[str, Value]
    figures: Mapping[str, Figure]
    bottleneck: str | None = None  # JSON "class"
    load: str | None = None
    sentence: str = ""
    notes: tuple[str, ...] = ()
    readings: Mapping[str, Value] = field(default_factory=dict)
    cut_note: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Runs alike but for the setting; `label` says what they have in common.

    `together` names settings of the same class that changed along with it.
    """

    label: str
    values: tuple[Value, ...]
    times: tuple[float, ...]  # seconds of a unit of work
    shown: tuple[float, ...]  # the figures themselves
    together: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What one group of runs shows. `bottleneck` None: nothing is proven; `excluded` is not it."""

    group: str
    says: str
    bottleneck: str | None
    between: tuple[str, ...] = ()
    excluded: str | None = None
    share: float | None = None
    strength: float = 0.0  # 0 to 1: how far past the line, how many runs, how well the law fits
    implied_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the experiment proves. `bottleneck` "undetermined": nothing, or `between` these.

    `excluded` names classes that are not the limit.
    """

    bottleneck: str  # JSON "class"
    confidence: float
    sentence: str
    between: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs, the setting that was varied (None: they only stand side by side), and the answer.

    `apart` names the settings that all runs state and that differ.
    """

    version: str
    runs: tuple[Run, ...]
    vary: str | None
    metric: str | None
    apart: tuple[str, ...]
    groups: tuple[Group, ...]
    findings: tuple[Finding, ...]
    conclusion: Conclusion
