"""Two records of the same steps: the recorder's own, and the ranges that a tracer saw of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stallscope.profiler.trace.timeline import Ints

# Durations agree within this share or this time.
SAME_SHARE = 0.05
SAME_NS = 1_000_000
_VOTERS = 64
_BIN_NS = 200_000  # engines schedule for about so long before or after they open the range
_THREADS = 8  # that may be in a step at one time
# nsys 2022.4.2 lost a range that began 3.4 ms after the start of the window that it reports.
_EDGE_NS = 100_000_000


@dataclass(frozen=True, slots=True)
class Spans:
    """Named spans of time, sorted by start, nanoseconds on a clock of their own."""

    names: tuple[str, ...]
    start_ns: Ints
    end_ns: Ints

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class Offset:
    """Tracer's time minus recorder's time, with what it may be wrong by."""

    ns: int
    error_ns: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two records agree. Counts are by name; `offset` is None where no span was found again.

    `expected` counts the recorder's spans while the tracer recorded, `found` those of them that
    the tracer has, `extra` the tracer's spans that the recorder has not. Of the spans found,
    `differing` last longer or shorter in one record than in the other by more than SAME_SHARE and
    SAME_NS; `worst_ns` is the largest such difference, whether it matters or not.
    """

    expected: Counter[str]
    found: Counter[str]
    extra: int
    differing: int
    worst_ns: int
    offset: Offset | None

    @property
    def is_whole(self) -> bool:
        return bool(self.expected) and self.expected == self.found


def compare(
    own: Spans,
    seen: Spans,
    *,
    guess: Offset | None = None,
    window_ns: tuple[int, int] | None = None,
) -> Agreement:
    """Find each of the recorder's spans among the tracer's.

    `guess` is what the wall clocks say of the offset. `window_ns` is when the tracer recorded, on
    its clock; spans that may reach out of it are not expected, nor those near its edge beyond the
    first or last that the tracer has, which records a little less than it says. Clocks are fitted
    to the spans: a constant offset under which most of them coincide, near the guess if there is
    one there. Where less than half of what is expected coincides, the tracer's spans are
    somebody else's.
    """
    offset = _fit(own, seen, guess)
    inside = _inside(own, offset or guess, window_ns)
    pairs = [] if offset is None else _pairs(own, seen, inside, offset.ns)
    if offset is None or len(pairs) < len(inside) / 2:
        missed = _inside(own, guess, window_ns)
        return Agreement(_names(own, missed), Counter(), len(seen), 0, 0, None)
    if window_ns is not None:
        reach = (window_ns[0] - offset.ns + _EDGE_NS, window_ns[1] - offset.ns - _EDGE_NS)
        inside = _surely(own, inside, [i for i, _ in pairs], reach)
    lengths = [(_length(own, i), _length(seen, j)) for i, j in pairs]
    differences = [abs(a - b) for a, b in lengths]
    differing = sum(
        d > max(SAME_NS, SAME_SHARE * a) for d, (a, _) in zip(differences, lengths, strict=True)
    )
    expected, found = _names(own, inside), _names(own, [i for i, _ in pairs])
    extra = len(seen) - len(pairs)
    return Agreement(expected, found, extra, differing, max(differences, default=0), offset)


def _names(spans: Spans, rows: Sequence[int]) -> Counter[str]:
    return Counter(spans.names[i] for i in rows)


def _length(spans: Spans, i: int) -> int:
    return int(spans.end_ns[i] - spans.start_ns[i])


def _fit(own: Spans, seen: Spans, guess: Offset | None) -> Offset | None:
    """Let some of the tracer's spans vote on the offset; those that agree decide."""
    if not len(own) or not len(seen):
        return None
    voters = np.unique(np.linspace(0, len(seen) - 1, min(_VOTERS, len(seen))).astype(np.int64))
    names = np.array(own.names)
    votes = np.concatenate(
        [seen.start_ns[j] - own.start_ns[names == seen.names[j]] for j in voters.tolist()]
    )
    if not len(votes):
        return None
    if guess is not None:
        near = votes[np.abs(votes - guess.ns) <= guess.error_ns]
        votes = near if len(near) else votes
    votes.sort()
    reach = np.searchsorted(votes, votes + _BIN_NS, side="right")
    first = int(np.argmax(reach - np.arange(len(votes))))  # where the most votes lie together
    return Offset(int(np.median(votes[first : int(reach[first])])), _BIN_NS)


def _inside(own: Spans, offset: Offset | None, window_ns: tuple[int, int] | None) -> list[int]:
    if offset is None or window_ns is None:
        return list(range(len(own)))
    starts = own.start_ns + offset.ns >= window_ns[0] + offset.error_ns
    ends = own.end_ns + offset.ns <= window_ns[1] - offset.error_ns
    return np.flatnonzero(starts & ends).tolist()


def _surely(
    own: Spans, inside: Sequence[int], found: Sequence[int], reach: tuple[int, int]
) -> list[int]:
    """Leave out what lies near the window's edge, before the first found or after the last."""
    first, last = min(found, default=0), max(found, default=len(own))
    begun = [i for i in inside if i >= first or own.start_ns[i] > reach[0]]
    return [i for i in begun if i <= last or own.end_ns[i] < reach[1]]


def _pairs(own: Spans, seen: Spans, inside: Sequence[int], offset_ns: int) -> list[tuple[int, int]]:
    """Pair each of the tracer's spans with the recorder's of its name that holds its middle."""
    free = set(inside)
    pairs: list[tuple[int, int]] = []
    middles = (seen.start_ns + seen.end_ns) // 2 - offset_ns
    for j, at_ns in enumerate(middles.tolist()):
        last = int(np.searchsorted(own.start_ns, at_ns, side="right"))
        for i in range(max(0, last - _THREADS), last):
            if i in free and own.names[i] == seen.names[j] and at_ns < own.end_ns[i]:
                free.remove(i)
                pairs.append((i, j))
                break
    return pairs
