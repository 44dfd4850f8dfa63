"""Stretches in which an engine had requests and counted nothing: a stopped one still answers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from stallscope.analyzers.load.engines import Moment, Values, moments, queued
from stallscope.analyzers.load.pool_use import used_share
from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import EngineSample

# Counters move once a step, and a step of long prompts takes seconds: 7 s were seen on a CPU. A
# watch of half a minute must be able to see it.
LEAST_NS = 25_000_000_000
# Where counters were seen to move, ten times their usual interval will do, from eight seconds on.
_SHORTEST_NS = 8_000_000_000
_USUAL = 10
_MOVES = 5
_COUNTERS = ("output_tokens_total", "input_tokens_total")


def counters(values: Values) -> tuple[float, ...]:
    """Return the counters of tokens that an engine has."""
    return tuple([values[name] for name in _COUNTERS if name in values])


class Lap(NamedTuple):
    """One engine from a sample to the next."""

    start_ns: int
    duration_ns: int
    now: Values
    after: Values

    @property
    def counters(self) -> tuple[float, ...]:
        return counters(self.now)

    @property
    def has_work(self) -> bool:
        """Whether requests were there at both ends."""
        now, after = self.now, self.after
        return now["running"] + queued(now) > 0 and after["running"] + queued(after) > 0

    @property
    def is_still(self) -> bool:
        """Whether nothing moved, KV use neither.

        One that runs alone may be a long prompt: it is counted when it is finished.
        """
        if not self.has_work or self.now["running"] == 1:
            return False
        used = used_share(self.now)
        is_frozen = used is not None and used == used_share(self.after)
        return is_frozen and bool(self.counters) and self.counters == counters(self.after)


def standing(laps: Iterable[Lap]) -> set[int]:
    """Return the starts of laps in a long stretch of one engine in which no counter moved."""
    stretches = [list(group) for _, group in groupby(laps, key=lambda lap: lap.counters)]
    least_ns = _least_ns(stretches)
    found: set[int] = set()
    for stretch in stretches:
        if sum(lap.duration_ns for lap in stretch) < least_ns:
            continue
        still = [lap for lap in stretch if lap.is_still]
        if sum(lap.duration_ns for lap in still) >= least_ns:
            found |= {lap.start_ns for lap in still}
    return found


def _least_ns(stretches: Sequence[Sequence[Lap]]) -> float:
    """Return how long counters must rest to stand still, by how often they moved before.

    The last stretch did not end in a move.
    """
    between = [sum(lap.duration_ns for lap in s) for s in stretches[:-1] if s[-1].has_work]
    if len(between) < _MOVES:
        return LEAST_NS
    return min(LEAST_NS, max(_SHORTEST_NS, _USUAL * statistics.median(between)))


def standstill_share(samples: Sequence[EngineSample], span: Span) -> float:
    """Return the part of the time with requests in which engines stood still; 0 where untold."""
    found = moments(samples)
    laps = [_laps(found, engine) for engine in {name for m in found for name in m.engines}]
    still = [standing(of_one) for of_one in laps]
    if not any(still):
        return 0.0
    stood = busy = 0
    for of_one, starts in zip(laps, still, strict=True):
        for lap in of_one:
            inside_ns = span.overlap_ns(lap.start_ns, lap.start_ns + lap.duration_ns)
            busy += inside_ns if lap.now["running"] + queued(lap.now) else 0
            stood += inside_ns if lap.start_ns in starts else 0
    return stood / busy if busy else 0.0


def _laps(found: Sequence[Moment], engine: str) -> list[Lap]:
    return [
        Lap(a.start_ns, a.duration_ns, a.engines[engine], b.engines[engine])
        for a, b in pairwise(found)
        if engine in a.engines and engine in b.engines
    ]
