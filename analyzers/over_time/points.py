"""Change points: where what limits changes, and a figure shows it by more than its noise."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from itertools import pairwise

from stallscope.analyzers.over_time.answers import joined, state, stretches
from stallscope.analyzers.over_time.figures import FIGURES, telling
from stallscope.analyzers.over_time.shift import Shift, Stretches, shift
from stallscope.analyzers.over_time.track import Track
from stallscope.analyzers.result import Change, Figure, Window

_MORE = 3.0  # times what a figure differs by from window to window under one limit
_LEAST_STEPS = 3  # from window to window, before they tell that


def find(
    windows: Sequence[Window], tracks: Callable[[], Sequence[Track]], phase: str = "all"
) -> tuple[tuple[Window, ...], tuple[Change, ...]]:
    """Return the stretches of one answer that figures tell apart, and the changes between them.

    Where none does, an answer that comes and goes stands at its threshold: that is no change, and
    the longer stretch speaks for both. `tracks` is asked only where an answer differs.
    """
    found = stretches(windows)
    if len(found) < 2:
        return found, ()
    known = tuple(tracks())
    window_s = windows[0].to_s - windows[0].from_s
    while len(found) > 1:
        moved = [_moved(a, b, known, window_s) for a, b in zip(found, found[1:], strict=False)]
        still = [i for i, shifts in enumerate(moved) if not shifts]
        if not still:
            return _parted(found, moved, phase)
        shortest = min(still, key=lambda i: min(_length(found[i]), _length(found[i + 1])))
        found = _merged(found, shortest)
    return found, ()


def _length(window: Window) -> float:
    return window.to_s - window.from_s


def _moved(
    before: Window, after: Window, tracks: Sequence[Track], window_s: float
) -> tuple[Shift, ...]:
    """Return the tracks that moved, and not only as they do all the time; most telling first."""
    two = Stretches(before.from_s, before.to_s, after.from_s, after.to_s, window_s)
    order = telling(before, after)
    found = (shift(track, two) for track in tracks)
    moved = [
        s
        for s in found
        if s is not None
        and abs(s.after - s.before) >= _MORE * _wander(s.track, (before, after), window_s)
    ]
    return tuple(sorted(moved, key=lambda s: order.index(s.track.name)))


def _wander(track: Track, found: Sequence[Window], window_s: float) -> float:
    """Return by how much a track differs from one window of a stretch to the next, on average.

    A queue grows and shrinks for a while under any load: that says nothing of another limit. It is
    0 where too few windows tell.
    """
    means = [tuple(track.blocks(w.from_s, w.to_s, window_s)) for w in found]
    steps = [abs(b.value - a.value) for rows in means for a, b in pairwise(rows)]
    return statistics.fmean(steps) if len(steps) >= _LEAST_STEPS else 0.0


def _merged(found: Sequence[Window], index: int) -> tuple[Window, ...]:
    """Let the longer of two neighbours speak for both."""
    a, b = found[index], found[index + 1]
    longer = a if _length(a) >= _length(b) else b
    both = dataclasses.replace(longer, from_s=a.from_s, to_s=b.to_s)
    return joined([*found[:index], both, *found[index + 2 :]])


def _parted(
    found: Sequence[Window], moved: Sequence[tuple[Shift, ...]], phase: str
) -> tuple[tuple[Window, ...], tuple[Change, ...]]:
    """Part the stretches where the most telling figure moved."""
    changes, rows = [], [found[0]]
    for after, shifts in zip(found[1:], moved, strict=True):
        before, at_s = rows[-1], shifts[0].at_s
        figures = _figures(shifts)
        old, new = state(before, phase), state(after, phase)
        changes.append(Change(at_s, shifts[0].error_s, phase, old, new, figures))
        rows[-1] = dataclasses.replace(before, to_s=at_s)
        rows.append(dataclasses.replace(after, from_s=at_s))
    return tuple(rows), tuple(changes)


def _figures(shifts: Sequence[Shift]) -> tuple[Figure, ...]:
    return tuple(map(_figure, shifts))


def _figure(found: Shift) -> Figure:
    track = found.track
    return Figure(
        name=track.name,
        what=FIGURES[track.name][1],
        unit=track.unit,
        before=found.before,
        after=found.after,
        provenance=track.provenance,
        source=track.source,
    )
