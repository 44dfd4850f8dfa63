"""One figure over time."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from stallscope.profiler.evidence import Provenance


class Block(NamedTuple):
    """The mean of the readings between two times."""

    from_s: float
    value: float


@dataclass(frozen=True, slots=True)
class Track:
    """A figure's readings in order of time, in seconds from the span's start.

    `is_held` says that a reading holds until the next one, as a gauge does. `least` is the smallest
    change that means anything, in the figure's unit.
    """

    name: str
    unit: str
    provenance: Provenance
    source: str
    times: tuple[float, ...]
    values: tuple[float, ...]
    least: float = 0.0
    is_held: bool = False

    def blocks(self, from_s: float, to_s: float, width_s: float) -> Iterator[Block]:
        """Yield the mean of each block of a stretch; one without a reading is left out.

        Of a gauge that is held, it is what was last read.
        """
        count = max(1, round((to_s - from_s) / width_s)) if width_s > 0 else 1
        edges = [from_s + (to_s - from_s) * i / count for i in range(count + 1)]
        at = [bisect_left(self.times, edge) for edge in edges]
        for start, first, last in zip(edges, at, at[1:], strict=False):
            if last > first:
                yield Block(start, statistics.fmean(self.values[first:last]))
            elif self.is_held and first > 0:
                yield Block(start, self.values[first - 1])
