"""How long an engine's steps take, by samples of its gauges and counters alone."""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from stallscope.analyzers.load.engines import Moment, Values, moments
from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import EngineSample

NS = 1e-9
_start = attrgetter("start_ns")


class Interval(NamedTuple):
    """One engine between two samples, and for how many seconds."""

    engine: str
    seconds: float
    now: Values
    after: Values

    @property
    def running(self) -> float:
        """Mean running requests, by the gauges at both ends."""
        return (self.now["running"] + self.after["running"]) / 2

    def rise(self, name: str) -> float | None:
        """Return by how much a counter rose; None if it is not sampled or was set back."""
        if name not in self.now or name not in self.after:
            return None
        rise = self.after[name] - self.now[name]
        return rise if rise >= 0 else None


def intervals(found: Sequence[Moment], span: Span) -> Iterator[Interval]:
    """Yield what lies wholly inside a span."""
    first = bisect_left(found, span.start_ns, key=_start)
    inside = found[first : bisect_right(found, span.end_ns, key=_start)]
    for now, after in pairwise(inside):
        for engine, values in now.engines.items():
            if engine in after.engines and now.duration_ns:
                yield Interval(engine, now.duration_ns * NS, values, after.engines[engine])


def sampled_step_s(samples: Sequence[EngineSample], span: Span) -> float | None:
    """Return the mean seconds of a step: a running request gets one token in each.

    So it is running requests × time ÷ tokens generated; None where no token was counted. Requests
    that are still in prefill run and get none, which makes it longer.
    """
    seconds, tokens = 0.0, 0.0
    for interval in intervals(moments(samples), span):
        made = interval.rise("output_tokens_total")
        if made is not None:
            seconds, tokens = seconds + interval.running * interval.seconds, tokens + made
    return seconds / tokens if tokens else None


def sample_interval_s(samples: Sequence[EngineSample]) -> float | None:
    """Return the median distance between an engine's samples; None for fewer than two."""
    times: dict[str, set[int]] = {}
    for sample in samples:
        times.setdefault(sample.engine, set()).add(sample.t_ns)
    apart = [b - a for found in times.values() for a, b in pairwise(sorted(found))]
    return statistics.median(apart) * NS if apart else None
