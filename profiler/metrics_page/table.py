"""What an engine calls our quantities on its page: names by version, best first."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

Values = dict[str, float]
Names = Mapping[str, tuple[str, ...]]


class Pick(NamedTuple):
    """One of the places of a quantity: `rank` 0 is the best; the label must have the value."""

    quantity: str
    rank: int
    label: str = ""
    value: str = ""


def _unchanged(values: Values) -> None:
    """Take what the page says as it is."""


@dataclass(frozen=True, slots=True)
class Table:
    """An engine's metrics without their prefix, as NAME or NAME{label=value}.

    `gauges`, `counters` and `seconds` (histograms of seconds) map our names to theirs; `settings`
    are gauges that tell a cap or a size, `labels` facts that stand in a label (NAME.label).
    Names that begin with "_" are only for `finish`, which makes the last figures from them.
    """

    engine: str
    prefix: re.Pattern[str]
    gauges: Names
    counters: Names
    seconds: Names = field(default_factory=dict)
    settings: Names = field(default_factory=dict)
    labels: Names = field(default_factory=dict)
    finish: Callable[[Values], None] = _unchanged

    def picks(self) -> Mapping[str, tuple[Pick, ...]]:
        """Return what each metric is good for. Counters are known with and without "_total"."""
        found: dict[str, list[Pick]] = {}
        for names in (self.gauges, self.settings):
            for quantity, places in names.items():
                for rank, place in enumerate(places):
                    _add(found, place, quantity, rank)
        for quantity, places in self.counters.items():
            for rank, place in enumerate(places):
                metric, _, where = place.partition("{")
                bare = metric.removesuffix("_total")
                for spelled in (bare, f"{bare}_total"):
                    _add(found, f"{spelled}{{{where}" if where else spelled, quantity, rank)
        for quantity, places in self.seconds.items():
            for rank, place in enumerate(places):
                for part in ("sum", "count"):
                    _add(found, f"{place}_{part}", f"{quantity}_{part}", rank)
        return {metric: tuple(picks) for metric, picks in found.items()}


def _add(found: dict[str, list[Pick]], place: str, quantity: str, rank: int) -> None:
    metric, _, where = place.partition("{")
    label, _, value = where.removesuffix("}").partition("=")
    found.setdefault(metric, []).append(Pick(quantity, rank, label, value))


def total(values: Values, names: tuple[str, ...]) -> float | None:
    """Add up those that are told; None where none is."""
    told = [values[name] for name in names if name in values]
    return sum(told) if told else None
