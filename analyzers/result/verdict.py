"""The answer: what limits the run, how it comes about, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """One edge of the causal chain, with the names of the measures behind it."""

    cause: str
    effect: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limiting class for each goal."""

    ttft: str
    tpot: str
    throughput: str


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a confidence rests on, each 0 to 1.

    `quality` of the evidence; `margin` over the runner-up (of undetermined: how far it is from any
    class); `stability` over windows; the `unexplained` share; `most` that this kind of evidence
    allows; and the `weight` of them together.
    """

    quality: float
    margin: float
    stability: float
    unexplained: float
    most: float
    weight: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer. `between` names the candidates when the class is undetermined.

    `limit` is the admission limit that held a queue, as a measure `limit_…` names it; `grounds` is
    what the confidence rests on; `finding` is its entry in docs/findings.md. `is_load_seen` is
    False where the load counts as served only because nothing tells what waited.
    """

    bottleneck: str  # JSON "class"
    confidence: float
    load: str
    phase: str
    sentence: str
    limits: Limits
    between: tuple[str, ...] = ()
    next_limit: str | None = None  # JSON "next"
    chain: tuple[Link, ...] = ()
    limit: str | None = None
    grounds: Grounds | None = None
    finding: str | None = None
    is_load_seen: bool = True
