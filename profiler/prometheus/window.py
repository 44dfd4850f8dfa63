"""The stretch of time to read, and how densely."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stallscope.errors import UsageError
from stallscope.profiler.prometheus.api import MOST_POINTS, Series

MOST_SAMPLES = 2_000_000  # in all; they are held in memory, some hundred bytes each
MOST_IN_ANSWER = 400_000  # about 10 MB of JSON
USUAL_INTERVAL_S = 15.0
LOOKED_AT_S = 300  # of one series, to learn the interval of scrapes
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_PART = re.compile(r"(\d{1,9})([smhdw])")
_LONGEST_S = 366 * 86_400


def parse_duration(text: str, option: str) -> int:
    """Return the seconds of a duration as Prometheus writes it: 90s, 30m, 1h30m, 2d."""
    parts = _PART.findall(text)
    seconds = sum(int(number) * _UNITS[unit] for number, unit in parts)
    if not parts or "".join(n + u for n, u in parts) != text or not 0 < seconds <= _LONGEST_S:
        raise UsageError(f"{option} {text!r:.40}: give a duration up to a year, such as 30m or 6h")
    return seconds


@dataclass(frozen=True, slots=True)
class Window:
    """From `start_s` to `end_s` (since 1970), read every `step_s`."""

    start_s: float
    end_s: float
    step_s: float

    def times(self) -> list[float]:
        """Return the times that are read."""
        count = math.floor((self.end_s - self.start_s) / self.step_s + 1e-9) + 1
        return [self.start_s + i * self.step_s for i in range(count)]

    def pieces(self, series: int) -> Iterator[Window]:
        """Cut into stretches whose answers Prometheus gives and memory holds, end to end."""
        times = self.times()
        most = max(1, min(MOST_POINTS, MOST_IN_ANSWER // max(1, series)))
        for begin in range(0, len(times), most):
            part = times[begin : begin + most]
            yield Window(part[0], part[-1], self.step_s)


def window(end_s: float, since_s: float, *, series: int, interval_s: float) -> Window:
    """Read as often as Prometheus scraped, or more seldom where that would be too much in all."""
    least_s = since_s * series / MOST_SAMPLES
    step_s = max(interval_s, math.ceil(least_s), 1.0)
    return Window(end_s - since_s, end_s, step_s)


def interval_of(found: Sequence[Series]) -> float:
    """Return the usual seconds between scrapes of series as they were scraped; whole ones."""
    gaps = [after - before for one in found for (before, _), (after, _) in pairwise(one.points)]
    return max(1.0, round(statistics.median(gaps))) if gaps else USUAL_INTERVAL_S
