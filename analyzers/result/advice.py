"""What to change, what that buys, and what would not help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gain:
    """A predicted change; `error` is the model's relative error on the observed run."""

    metric: str
    unit: str
    before: float  # JSON "from"
    after: float  # JSON "to"
    error: float

    @property
    def is_told(self) -> bool:
        """Whether the change exceeds its error, in the whole per cent that reports show."""
        change = self.after / self.before - 1.0
        return round(100 * self.error) < round(100 * abs(change))


@dataclass(frozen=True, slots=True)
class Remedy:
    """An action, its flag by engine, its gain (None when no model produced one).

    `evidence` names the measures it rests on, `cost` what it takes in exchange.
    """

    action: str
    flag: Mapping[str, str]
    gain: Gain | None
    check: str
    evidence: tuple[str, ...] = ()
    cost: str = ""


@dataclass(frozen=True, slots=True)
class WontHelp:
    """A popular fix that does nothing here."""

    action: str
    because: str
