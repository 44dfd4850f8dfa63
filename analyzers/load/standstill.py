"""Stretches in which an engine had requests and counted nothing: a stopped one still answers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from stallscope.analyzers.load.engines import Values, moments, queued
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


class Lap(NamedTuple):
    """One engine from a sample to the next."""

    start_ns: int
    duration_ns: int
    now: Values
    after: Values

    @property
    def counters(self) -> tuple[float, ...]:
        return tuple(self.now[name] for name in _COUNTERS if name in self.now)

    @property
    def has_work(self) -> bool:
        """Whether requests were there at both ends."""
        return all(v["running"] + queued(v) > 0 for v in (self.now, self.after))

    @property
    def is_still(self) -> bool:
        """Whether nothing moved, KV use neither.

        One that runs alone may be a long prompt: it is counted when it is finished.
        """
        is_alone = self.now["running"] == 1
        used = used_share(self.now)
        is_frozen = used is not None and used == used_share(self.after)
        after = tuple(self.after[name] for name in _COUNTERS if name in self.after)
        is_same = bool(self.counters) and self.counters == after
        return self.has_work and is_frozen and is_same and not is_alone


def standing(laps: Iterable[Lap]) -> set[int]:
    """Return the starts of laps in a long stretch of one engine in which no counter moved."""
    stretches = [list(group) for _, group in groupby(laps, key=lambda lap: lap.counters)]
    least_ns = _least_ns(stretches)
    found: set[int] = set()
    for stretch in stretches:
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
    stood = busy = 0
    for engine in {name for m in found for name in m.engines}:
        laps = [
            Lap(a.start_ns, a.duration_ns, a.engines[engine], b.engines[engine])
            for a, b in zip(found, found[1:], strict=False)
            if engine in a.engines and engine in b.engines
        ]
        still = standing(laps)
        for lap in laps:
            inside_ns = span.overlap_ns(lap.start_ns, lap.start_ns + lap.duration_ns)
            busy += inside_ns if lap.now["running"] + queued(lap.now) else 0
            stood += inside_ns if lap.start_ns in still else 0
    return stood / busy if busy else 0.0
