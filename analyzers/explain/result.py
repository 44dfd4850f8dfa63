"""What a derivation is: the procedure's steps in order, their numbers, and what was compared."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.profiler.evidence import BoundSide, Provenance


@dataclass(frozen=True, slots=True)
class Term:
    """A number of a step.

    Without a `formula` it stands among the measures or in the budget of all steps; with one it is
    that arithmetic (+ - * /, min, max, round) on numbers and the terms before it.
    """

    name: str
    value: float
    unit: str
    provenance: Provenance
    source: str
    side: BoundSide | None = None
    formula: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A term against a line. `holds` is None where a bound does not settle it.

    `threshold` is a key of the thresholds, or None where the line is fixed. `distance` is the term
    less the line: by how much the term would have to move for the other answer.
    """

    term: str
    value: float
    sign: str  # "<", "≤", "≥", ">"
    limit: float
    threshold: str | None
    holds: bool | None
    distance: float


@dataclass(frozen=True, slots=True)
class ExplainStep:
    """One step: its question, its `answer`, and why.

    `answer` is a rule's status, "decides", "passes on" or "not observable"; of a goal's own step
    "decides the headline", of the last the confidence.
    """

    id: str
    question: str
    answer: str
    because: str
    terms: tuple[Term, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
