"""What the document's own rules say."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.profiler.evidence import Measure


@dataclass(frozen=True, slots=True)
class DocumentVerdict:
    """What the document's own rules say, and why the verdict differs where it does."""

    classes: tuple[str, ...]
    advice: str | None
    differs_because: str | None
    sentence: str  # "By the document's rules: …"


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One of the document's rules: "met", "not met" or "not observable", and its numbers.

    `text` is the rule in words with its thresholds.
    """

    id: str
    text: str
    status: str
    reason: str
    measures: tuple[Measure, ...]
