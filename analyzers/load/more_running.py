"""What more running requests would bring at the most, by samples at several loads."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stallscope.analyzers.load.engines import moments
from stallscope.analyzers.load.sampled_steps import Interval, intervals
from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import EngineSample

LEAST_SPREAD = 1.5  # between two numbers of running requests: nearer ones tell noise from no slope
_LEAST_STEPS = 20  # fewer are told to no better than a tenth by counters at both ends
_LEAST_INTERVALS = 3  # a number that was passed through tells of the ramp
_STEADY = 0.1  # running may change within an interval by this part, or by one request
_PER_DOUBLING = 4  # levels
_LEAST_ERROR = 0.02  # of a rate: repeated runs of one load are no nearer
_PROMPTS = 0.25  # prompt tokens per generated token: with so many fewer, a level did other work


@dataclass(slots=True)
class _Level:
    """The intervals in which about as many requests ran."""

    found: list[Interval] = field(default_factory=list)

    def _sum(self, name: str) -> float:
        return sum(i.rise(name) or 0.0 for i in self.found)

    @property
    def seconds(self) -> float:
        return sum(i.seconds for i in self.found)

    @property
    def running(self) -> float:
        return sum(i.running * i.seconds for i in self.found) / self.seconds

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self._sum("output_tokens_total") / self.seconds

    @property
    def prompts(self) -> float:
        """Prompt tokens for each token generated."""
        return self._sum("input_tokens_total") / self._sum("output_tokens_total")

    @property
    def is_held(self) -> bool:
        steps = self.rate * self.seconds / self.running
        return len(self.found) >= _LEAST_INTERVALS and steps >= _LEAST_STEPS

    @property
    def error(self) -> float:
        """Two standard errors of the rate, as a part of it."""
        rates = [(i.rise("output_tokens_total") or 0.0) / i.seconds for i in self.found]
        spread = statistics.stdev(rates) / math.sqrt(len(rates)) / self.rate
        return max(_LEAST_ERROR, 2.0 * spread)


@dataclass(frozen=True, slots=True)
class Growth:
    """Tokens per second at two numbers of running requests, and the exponent between them.

    `exponent` is ln(rate ratio) ÷ ln(running ratio) with the rates' errors against us: 1 is in
    proportion, 0 no more tokens at all.
    """

    low: float
    high: float
    rate_low: float
    rate_high: float
    exponent: float

    def most(self, running: float) -> float:
        """Return the most that the rate may rise by, from `high` to so many running.

        The exponent falls with running: a step's time is a + b · running, or bound by memory before
        it is by arithmetic. So it is no higher beyond `high` than below it.
        """
        return float(max(1.0, running / self.high) ** self.exponent) - 1.0


def observe_growth(samples: Sequence[EngineSample], span: Span) -> Growth | None:
    """Compare the most that ran with the next lower number that was held too.

    None for several engines, or where running did not stand at two numbers far enough apart.
    """
    found = moments(samples)
    if len({name for m in found for name in m.engines}) != 1:
        return None
    levels = _held(intervals(found, span))
    if not levels:
        return None
    top = levels[-1]
    lower = [
        level
        for level in levels
        if top.running >= LEAST_SPREAD * level.running and level.prompts >= top.prompts - _PROMPTS
    ]
    if not lower:
        return None
    low = lower[-1]
    ratio = top.rate / low.rate * (1.0 + top.error) / max(1.0 - low.error, 0.1)
    exponent = max(0.0, math.log(ratio) / math.log(top.running / low.running))
    return Growth(low.running, top.running, low.rate, top.rate, exponent)


def _held(found: Iterable[Interval]) -> list[_Level]:
    """Group intervals by running requests, lowest first."""
    levels: dict[int, _Level] = {}
    for interval in found:
        changed = abs(interval.after["running"] - interval.now["running"])
        is_steady = changed <= max(1.0, _STEADY * interval.running)
        counters = ("output_tokens_total", "input_tokens_total")
        is_counted = all(interval.rise(name) is not None for name in counters)
        if is_steady and is_counted and interval.running >= 1.0:
            key = round(math.log2(interval.running) * _PER_DOUBLING)
            levels.setdefault(key, _Level()).found.append(interval)
    return [level for _, level in sorted(levels.items()) if level.is_held]
