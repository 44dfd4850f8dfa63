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
    """When a source saw work: `interval_ns` lies between its looks, 0 where times are exact."""

    span_ns: tuple[int, int]
    interval_ns: int
    stretches: tuple[Stretch, ...]


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


def lasting(stretches: Iterable[Stretch], least_ns: int) -> Iterator[Stretch]:
    """Yield the stretches that are long enough for another source to see them."""
    for begin, end in stretches:
        if begin is None or end is None or end.middle_ns - begin.middle_ns >= least_ns:
            yield Stretch(begin, end)


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
