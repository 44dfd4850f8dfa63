"""Whether a figure moved between two stretches by more than its noise, and when."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from stallscope.analyzers.over_time.track import Block, Track

BLOCKS = 8  # in a window: enough to tell its noise, few enough for a block to hold several steps
_MIN_BLOCKS = 5  # on each side: five stand apart from five by chance once in 126 times
_APART = 0.95  # of the pairs of a block before and one after, of which the later is the higher one
_LEAST_CHANGE = 0.10  # of the larger: less is drift, and names no other limit
_FINEST = 0.02  # of the distance from the lowest to the highest block: readings that stand still
_BY_CHANCE = 100  # orders of the windows, of which one parts them as they lie
_FAR_CHANGE = 0.50  # of the larger mean, between windows in which a figure comes and goes


@dataclass(frozen=True, slots=True)
class Stretches:
    """Two neighbours in time, in seconds, and how long a window is."""

    from_s: float
    first_ends_s: float
    second_begins_s: float
    to_s: float
    window_s: float


@dataclass(frozen=True, slots=True)
class Shift:
    """A track that moved at a time, known to `error_s`; what it was before, and after."""

    track: Track
    before: float
    after: float
    at_s: float
    error_s: float


@dataclass(frozen=True, slots=True)
class _Level:
    """The median that readings keep to, and how far they lie from it on average."""

    median: float
    spread: float

    def misfit(self, value: float) -> float:
        """Return how unlikely a reading is here (Laplace's law)."""
        return math.log(self.spread) + abs(value - self.median) / self.spread

    def holds(self, value: float, change: float) -> bool:
        """Tell whether a reading keeps to the level, and is not on the way from or to it."""
        return abs(value - self.median) <= max(2 * self.spread, _LEAST_CHANGE * change)


def shift(track: Track, two: Stretches) -> Shift | None:
    """Return how a track moved from one stretch to the next; None for noise and drift.

    The split is the one within a window of where the stretches part that fits best: of a figure
    that climbs to a level and stays there, the arrival, not half the way.
    """
    blocks = tuple(track.blocks(two.from_s, two.to_s, two.window_s / BLOCKS))
    values = _values(blocks)
    split = _best_split(values, [b.from_s for b in blocks], two)
    if split is not None:
        old, new = values[:split], values[split:]
        before, after = _level(old, values), _level(new, values)
        is_change = _is_change(track, before.median, after.median, _LEAST_CHANGE)
        if is_change and apart(old, new) >= _APART:
            at_block = blocks[split].from_s, two.window_s / BLOCKS
            at_s, error_s = _place(track, before, after, two) or at_block
            return Shift(track, before.median, after.median, at_s, error_s)
    return _between_windows(track, two)


def apart(before: Sequence[float], after: Sequence[float]) -> float:
    """Return how far two sets stand apart: 0.5 where they lie in each other, 1 where all differ.

    It is the share of pairs, one of each, in which the later value is the higher one (or the lower
    one, where that is more); ties count half.
    """
    ordered = sorted(before)
    higher = sum(bisect_left(ordered, v) + bisect_right(ordered, v) for v in after) / 2
    share = higher / (len(before) * len(after))
    return max(share, 1.0 - share)


def _values(blocks: Sequence[Block]) -> list[float]:
    return [b.value for b in blocks]


def _is_change(track: Track, before: float, after: float, least: float) -> bool:
    change = abs(after - before)
    return change > 0 and change >= max(track.least, least * max(abs(before), abs(after)))


def _best_split(values: Sequence[float], starts: Sequence[float], two: Stretches) -> int | None:
    """Return where two levels fit the blocks best."""
    first = two.first_ends_s - two.window_s * (1 + 1e-9)
    last = two.second_begins_s + two.window_s * (1 + 1e-9)
    splits = [
        i for i in range(_MIN_BLOCKS, len(values) - _MIN_BLOCKS + 1) if first <= starts[i] <= last
    ]
    if not splits or max(values) == min(values):
        return None
    misfits = {i: _misfit(values[:i], values) + _misfit(values[i:], values) for i in splits}
    return min(splits, key=misfits.__getitem__)


def _level(values: Sequence[float], both: Sequence[float]) -> _Level:
    """Work out a level; no spread is finer than a part of all that the two stretches hold."""
    median = statistics.median(values)
    spread = statistics.fmean(abs(v - median) for v in values)
    return _Level(median, max(spread, _FINEST * (max(both) - min(both))))


def _misfit(values: Sequence[float], both: Sequence[float]) -> float:
    level = _level(values, both)
    return math.fsum(map(level.misfit, values))


def _place(
    track: Track, before: _Level, after: _Level, two: Stretches
) -> tuple[float, float] | None:
    """Find the reading that parts those at the one level from those at the other best.

    Known to the last that keeps to the one and the first that reaches the other, and to the
    farthest that lies on the wrong side.
    """
    from_s = max(two.from_s, two.first_ends_s - two.window_s)
    to_s = min(two.to_s, two.second_begins_s + two.window_s)
    first, last = bisect_left(track.times, from_s), bisect_left(track.times, to_s)
    if first == last:
        return None
    times, values = track.times[first:last], track.values[first:last]
    misses = [after.misfit(v) - before.misfit(v) for v in values]
    # Each reading from the split on counts for it by how much better the later level fits.
    sums = list(accumulate(reversed(misses)))[::-1]
    split = min(range(len(sums)), key=sums.__getitem__)
    if sums[split] >= 0:
        return None
    wrong = [t for i, t in enumerate(times) if misses[i] and (misses[i] < 0) != (i >= split)]
    change = abs(after.median - before.median)
    left = (i for i in range(split - 1, -1, -1) if before.holds(values[i], change))
    reached = (i for i in range(split, len(values)) if after.holds(values[i], change))
    ends = (times[next(left, 0)], times[next(reached, -1)], *wrong)
    at_s = times[split]
    return at_s, max(abs(at_s - t) for t in ends)


def _between_windows(track: Track, two: Stretches) -> Shift | None:
    """Look at means of whole windows: a figure that comes and goes may stand at 0 in both medians.

    Every window of the one must lie above every one of the other, and so many windows that few
    orders of them would.
    """
    old = _values(tuple(track.blocks(two.from_s, two.first_ends_s, two.window_s)))
    new = _values(tuple(track.blocks(two.second_begins_s, two.to_s, two.window_s)))
    if not old or not new or math.comb(len(old) + len(new), len(new)) < _BY_CHANCE:
        return None
    before, after = statistics.fmean(old), statistics.fmean(new)
    is_far = _is_change(track, before, after, _FAR_CHANGE)
    if not is_far or not (max(old) < min(new) or max(new) < min(old)):
        return None
    return Shift(track, before, after, two.second_begins_s, two.window_s)
