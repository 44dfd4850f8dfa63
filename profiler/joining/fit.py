"""How well the work that two sources saw agrees at some offset of their clocks, and near it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stallscope.profiler.joining.edges import (
    Edges,
    Stretch,
    Times,
    Work,
    begins,
    ends,
    merged,
    told,
)
from stallscope.profiler.joining.flight import above, levels_of
from stallscope.profiler.joining.words import FLIGHT, WORK

_S = 1_000_000_000
MOST_RESIDUAL_NS = 2 * _S
_APART = 2  # intervals: pauses and stretches that are shorter are not seen by every source
_LEAST_NS = 2 * _S
_STRAY = 5  # one moment in so many may have no partner: work of others, or of no request
_MOST_ROWS = 2_000  # moments of one source; the first ones stand for the rest


@dataclass(frozen=True, slots=True)
class Fit:
    """The offset at which begins and ends agree best.

    `residual_ns` is how far the worst of them stay apart then; `matched` of `looked_at` moments
    found a partner. Offsets from `least_ns` to `most_ns` do as well.
    """

    offset_ns: int
    least_ns: int
    most_ns: int
    residual_ns: int
    matched: int
    looked_at: int

    @property
    def agrees(self) -> bool:
        """Whether the residual is small enough to trust the offset."""
        return self.residual_ns <= MOST_RESIDUAL_NS


@dataclass(frozen=True, slots=True)
class _Side:
    """One source's moments that shall find a partner, all that may be one, and its span."""

    asked: tuple[Edges, ...]
    answers: tuple[Edges, ...]
    span_ns: tuple[int, int]

    @property
    def asks(self) -> bool:
        """Whether there is anything that the other source must have seen."""
        return any(map(len, self.asked))


class Comparison:
    """Two sources' work, their short pauses and stretches left out.

    The moments count at which the requests in flight passed a level, if both tell their number,
    where neither saw work begin or end, and beside a client's record: a server may have been warm
    when it began. The offset is what is added to the second one's
    times to stand on the first one's clock.
    """

    def __init__(self, first: Work, second: Work) -> None:
        least_ns = max(_APART * max(first.interval_ns, second.interval_ns), _LEAST_NS)
        self.what = WORK
        self.first, self.second = _side(first, least_ns), _side(second, least_ns)
        if first.is_whole or second.is_whole or not (self.first.asks or self.second.asks):
            levels = levels_of(first, second)
            sides = _side(first, least_ns, levels), _side(second, least_ns, levels)
            if levels and (sides[0].asks or sides[1].asks):
                self.what, (self.first, self.second) = FLIGHT, sides
        self._is_first_coarse = first.interval_ns >= second.interval_ns
        self.edge_ns = least_ns + MOST_RESIDUAL_NS

    def overlap_ns(self, offset_ns: int) -> int:
        """Return how long both look at the same time."""
        (a, b), (c, d) = self.first.span_ns, self.second.span_ns
        return min(b, d + offset_ns) - max(a, c + offset_ns)

    def shorter_ns(self) -> int:
        """Return the length of the shorter one."""
        return min(s.span_ns[1] - s.span_ns[0] for s in (self.first, self.second))

    def fit(self, near_ns: int) -> Fit | None:
        """Fit near an offset; None where neither saw a begin or an end while both looked.

        The coarser source asks first: the finer one may see pauses that it cannot.
        """
        for is_first in (self._is_first_coarse, not self._is_first_coarse):
            found = self._asked_by(is_first, near_ns)
            if found is not None:
                return found
        return None

    def both_ways(self, near_ns: int) -> tuple[Fit, ...]:
        """Fit near an offset with either source asking."""
        found = (self._asked_by(True, near_ns), self._asked_by(False, near_ns))
        return tuple(f for f in found if f is not None)

    def guesses(self) -> Times:
        """Return the offsets, to the second, at which some moments of both would fall together."""
        asking = self.first if self._is_first_coarse else self.second
        other = self.second if self._is_first_coarse else self.first
        sign = 1 if self._is_first_coarse else -1
        found = [
            sign * (asked.middle_ns[i] - answers.middle_ns)
            for asked, answers in zip(asking.asked, other.answers, strict=True)
            for i in _spread_over(len(asked))
        ]
        seconds = [(offsets + _S // 2) // _S * _S for offsets in found]
        return np.unique(np.concatenate(seconds)) if seconds else np.empty(0, dtype=np.int64)

    def _asked_by(self, is_first: bool, near_ns: int) -> Fit | None:
        asking, other = (self.first, self.second) if is_first else (self.second, self.first)
        moved = near_ns if is_first else -near_ns
        pairs = _pairs(asking, other, moved, self.edge_ns)
        if pairs is None:
            return None
        least, most = pairs if is_first else (-pairs[1], -pairs[0])
        return _fitted(least, most, near_ns)


def _side(work: Work, least_ns: int, levels: Sequence[float] = ()) -> _Side:
    tracks = [tuple(above(work, level)) for level in levels] or [work.stretches]
    whole = [list(merged(track, least_ns)) for track in tracks]
    asked = [list(told(track, work, least_ns)) for track in whole]
    return _Side(_edges(asked), _edges(whole), work.span_ns)


def _edges(tracks: Sequence[Sequence[Stretch]]) -> tuple[Edges, ...]:
    kept = [track[:_MOST_ROWS] for track in tracks]
    return tuple(edges for track in kept for edges in (begins(track), ends(track)))


def _spread_over(count: int) -> Sequence[int]:
    return sorted({0, count // 3, 2 * count // 3, count - 1}) if count else ()


def _pairs(asking: _Side, other: _Side, near_ns: int, edge_ns: int) -> tuple[Times, Times] | None:
    """Return, for each moment asked about, from where to where an offset would explain it.

    Moments outside what the other source saw are left out, and those at its very edge that find no
    partner: there it may have begun busy.
    """
    lows, highs = [], []
    for asked, answers in zip(asking.asked, other.answers, strict=True):
        if not len(answers):
            continue
        start_ns, end_ns = other.span_ns[0] + near_ns, other.span_ns[1] + near_ns
        inside = (asked.last_ns >= start_ns) & (asked.first_ns <= end_ns)
        first, last = asked.first_ns[inside], asked.last_ns[inside]
        low, high = _nearest(first, last, answers, near_ns)
        far = np.maximum(low - near_ns, near_ns - high) > MOST_RESIDUAL_NS
        at_edge = (first - start_ns < edge_ns) | (end_ns - last < edge_ns)
        lows.append(low[~(far & at_edge)])
        highs.append(high[~(far & at_edge)])
    if not sum(map(len, lows)):
        return None
    return np.concatenate(lows), np.concatenate(highs)


def _nearest(first: Times, last: Times, answers: Edges, near_ns: int) -> tuple[Times, Times]:
    middle = answers.middle_ns
    right = np.searchsorted(middle, (first + last) // 2 - near_ns)
    at = np.clip(np.stack([right - 1, right]), 0, len(middle) - 1)
    low, high = first - answers.last_ns[at], last - answers.first_ns[at]
    nearer = np.argmin(np.maximum(low - near_ns, near_ns - high), axis=0)
    row = np.arange(len(first))
    return low[nearer, row], high[nearer, row]


def _fitted(least: Times, most: Times, near_ns: int) -> Fit:
    """Choose the offset whose worst moment is nearest; a few without any partner are left out."""
    count = len(least)
    centre = int(np.median((least + most) // 2))
    misfit = np.maximum(least - centre, centre - most)
    order = np.argsort(misfit, kind="stable")
    strays = min(count // _STRAY, int((misfit > 2 * MOST_RESIDUAL_NS).sum()))
    kept = order[: count - strays]
    low, high = int(least[kept].max()), int(most[kept].min())
    residual = max(0, (low - high + 1) // 2)
    low, high = (low, high) if low <= high else ((low + high) // 2, (low + high) // 2)
    offset = min(max(near_ns, low), high)
    misfit = np.maximum(least - offset, offset - most)
    matched = int((misfit <= MOST_RESIDUAL_NS).sum())
    return Fit(offset, low, high, residual, matched, count)
