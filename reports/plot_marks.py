"""Colour and shape of each phase, the same in every picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """A colour from Okabe and Ito's palette, and a shape for readers who see no colour."""

    color: str
    marker: str


PHASE_MARKS: Mapping[str, Mark] = {
    "prefill": Mark("#D55E00", "^"),
    "decode": Mark("#0072B2", "o"),
    "mixed": Mark("#009E73", "s"),
    "other": Mark("#777777", "D"),
}


def mark_of(label: str) -> Mark:
    """Return the mark of the phase that `label` begins with."""
    found = (mark for phase, mark in PHASE_MARKS.items() if label.startswith(phase))
    return next(found, PHASE_MARKS["other"])
