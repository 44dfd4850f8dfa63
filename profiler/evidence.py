"""A number with its unit and its provenance, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Provenance = Literal["measured", "derived", "bound", "estimated"]
BoundSide = Literal["lower", "upper"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of evidence.

    `provenance` follows the quantity, not the way it came: `measured` is a counter or a clock,
    `derived` is arithmetic on measured values, `bound` settles a comparison one way only (`side`
    says which: the true value is at least / at most this one), `estimated` comes from a model of
    the work, named in `source`. Fractions are 0 to 1.
    """

    name: str
    value: float
    unit: str
    provenance: Provenance
    source: str
    side: BoundSide | None = None


@dataclass(frozen=True, slots=True)
class NotObservable:
    """A quantity we do not have: why, and the cheapest way to get it."""

    what: str
    reason: str
    how: str


CheckStatus = Literal["ok", "missing", "limited", "unknown"]


@dataclass(frozen=True, slots=True)
class Check:
    """Whether a source of evidence can be used here: what was found, what is lost, what helps."""

    name: str
    status: CheckStatus
    reason: str
    lost: str | None = None
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class CheckGroup:
    """Checks that belong together."""

    title: str
    checks: tuple[Check, ...]
