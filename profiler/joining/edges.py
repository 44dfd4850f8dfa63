"""Moments at which work began or ended, as one source knows them, and stretches between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]


class Between(NamedTuple):
    """A moment that lies somewhere from `first_ns` to `last_ns`."""

    first_ns: int
    last_ns: int

    @property
    def middle_ns(self) -> int:
        """The moment in the middle."""
        return (self.first_ns + self.last_ns) // 2


class Stretch(NamedTuple):
    """Work without a pause; None where it had begun before the source did, or outlived it."""

    begin: Between | None
    end: Between | None


@dataclass(frozen=True, slots=True)
class Work:
    """When a source saw work: `interval_ns` lies between its looks, 0 where times are exact.

    `flight` is how many requests it saw in flight, look by look; empty where it does not count
    them.
    """

    span_ns: tuple[int, int]
    interval_ns: int
    stretches: tuple[Stretch, ...]
    flight: tuple[tuple[int, float], ...] = ()
    slack_ns: int = 0  # how much later than stated a look may have been
    is_whole: bool = False  # a client's record: nothing of it lies before or after


@dataclass(frozen=True, slots=True)
class Edges:
    """Begins or ends, by their middle."""

    first_ns: Times
    last_ns: Times

    def __len__(self) -> int:
        return len(self.first_ns)

    @property
    def middle_ns(self) -> Times:
        """The middles, rising."""
        return (self.first_ns + self.last_ns) // 2


def merged(stretches: Iterable[Stretch], least_ns: int) -> Iterator[Stretch]:
    """Yield stretches with the pauses between them closed that are shorter than `least_ns`."""
    held: Stretch | None = None
    for stretch in stretches:
        if held is None or held.end is None or stretch.begin is None:
            held = stretch if held is None else Stretch(held.begin, stretch.end)
        elif stretch.begin.middle_ns - held.end.middle_ns < least_ns:
            held = Stretch(held.begin, stretch.end)
        else:
            yield held
            held = stretch
    if held is not None:
        yield held


def told(stretches: Sequence[Stretch], work: Work, least_ns: int) -> Iterator[Stretch]:
    """Yield what another source must have seen too: stretches that last, between pauses that do.

    `stretches` are those of the work with its short pauses closed. How long it paused before the
    first and after the last one is not known beyond what was looked at, unless it is `whole`.
    """
    for begin, end in stretches:
        if begin is not None and end is not None and end.middle_ns - begin.middle_ns < least_ns:
            continue
        if not work.is_whole:
            begin = begin if _after(begin, work.span_ns[0]) >= least_ns else None
            end = end if -_after(end, work.span_ns[1]) >= least_ns else None
        yield Stretch(begin, end)


def _after(moment: Between | None, t_ns: int) -> int:
    return 0 if moment is None else moment.middle_ns - t_ns


def exact(spans: Iterable[tuple[int, int]], slack_ns: int) -> Iterator[Stretch]:
    """Yield the stretches that spans of known times make up, give or take `slack_ns`."""
    moments = (
        Stretch(Between(a - slack_ns, a + slack_ns), Between(b - slack_ns, b + slack_ns))
        for a, b in _union(spans)
    )
    return merged(moments, 1)


def _union(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    held: tuple[int, int] | None = None
    for start, end in sorted(spans):
        if held is None or start > held[1]:
            if held is not None:
                yield held
            held = start, end
        else:
            held = held[0], max(held[1], end)
    if held is not None:
        yield held


def begins(stretches: Sequence[Stretch]) -> Edges:
    """Return the moments at which they begin."""
    return _edges(s.begin for s in stretches)


def ends(stretches: Sequence[Stretch]) -> Edges:
    """Return the moments at which they end."""
    return _edges(s.end for s in stretches)


def _edges(moments: Iterable[Between | None]) -> Edges:
    known = sorted((m for m in moments if m is not None), key=lambda m: m.middle_ns)
    return Edges(
        np.array([m.first_ns for m in known], dtype=np.int64),
        np.array([m.last_ns for m in known], dtype=np.int64),
    )
