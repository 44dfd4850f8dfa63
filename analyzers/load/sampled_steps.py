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
_STEADY = 0.2  # of the most running: where gauges are further apart none tells how many ran
_start = attrgetter("start_ns")


class Interval(NamedTuple):
    """One engine between two samples, and for how many seconds; `before` is the sample before."""

    engine: str
    seconds: float
    now: Values
    after: Values
    before: Values | None = None

    @property
    def running(self) -> float:
        """Mean running requests, by the gauges at both ends."""
        return (self.now["running"] + self.after["running"]) / 2

    @property
    def is_steady(self) -> bool:
        """Whether about as many ran at the sample before, at this one and at the next.

        A line of a log tells of its end for all of its period: the one before it tells the start.
        """
        told = (
            (self.now, self.after) if self.before is None else (self.before, self.now, self.after)
        )
        gauges = [values["running"] for values in told]
        return min(gauges) > 0 and max(gauges) - min(gauges) <= max(1.0, _STEADY * max(gauges))

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
    before = found[first - 1].engines if first else {}
    for now, after in pairwise(inside):
        for engine, values in now.engines.items():
            if engine in after.engines and now.duration_ns:
                seconds, later = now.duration_ns * NS, after.engines[engine]
                yield Interval(engine, seconds, values, later, before.get(engine))
        before = now.engines


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
