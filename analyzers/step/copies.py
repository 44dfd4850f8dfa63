"""Copies over a link that a recording marked: the link's time, and none of the host's."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from stallscope.analyzers.event_fields import number, whole_events
from stallscope.analyzers.step.budget import NS, StepCost
from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.evidence import Measure

MARKED_MEASURES: dict[str, tuple[str, str]] = {
    "copies_marked": ("fraction", "of step time, copies over a link that the loop waited for"),
    "copy_bytes_per_step": ("bytes", "bytes of such copies in a step"),
    "copy_rate": ("B/s", "bytes of such copies over their time"),
}
_SOURCE = "copy events"


@dataclass(frozen=True, slots=True)
class _Union:
    """Intervals that do not overlap, in order, with the sums of their lengths."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    sums: tuple[int, ...]

    def until(self, t_ns: int) -> int:
        """Return how much of them lies before a time."""
        count = bisect_right(self.starts, t_ns)
        if not count:
            return 0
        return self.sums[count - 1] - max(0, self.ends[count - 1] - t_ns)

    def within(self, start_ns: int, end_ns: int) -> int:
        return self.until(end_ns) - self.until(start_ns)


def _union(intervals: Iterable[tuple[int, int]]) -> _Union:
    merged: list[list[int]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([start, end])
    lengths = accumulate(end - start for start, end in merged)
    return _Union(tuple(m[0] for m in merged), tuple(m[1] for m in merged), tuple(lengths))


def _marked(capture: Capture) -> tuple[Event, ...]:
    return tuple(e for e in whole_events(capture, "copy") if (number(e, "length_ns") or 0) > 0)


def _interval(event: Event) -> tuple[int, int]:
    return event.t_ns, event.t_ns + round(number(event, "length_ns") or 0)


def _is_inside(event: Event) -> bool:
    """Say whether a copy was waited for inside the forward call."""
    return bool(number(event, "in_forward"))


def with_copies(costs: Sequence[StepCost], capture: Capture) -> tuple[StepCost, ...]:
    """Take marked copies for each step's transfer, and out of the host's time.

    Where a kernel trace tells of copies it goes first. Without marks nothing changes.
    """
    events = _marked(capture)
    if not events:
        return tuple(costs)
    inside = _union(_interval(e) for e in events if _is_inside(e))
    outside = _union(_interval(e) for e in events if not _is_inside(e))
    return tuple(c if "transfer" in c.traced else _with(c, inside, outside) for c in costs)


def _with(c: StepCost, inside: _Union, outside: _Union) -> StepCost:
    start_ns = c.step.end_ns - round(c.time_s / NS)  # with the gap before it
    outside_s = outside.within(start_ns, c.step.end_ns) * NS
    seconds = outside_s + inside.within(c.step.start_ns, c.step.end_ns) * NS
    return dataclasses.replace(
        c,
        host_s=max(0.0, c.host_s - outside_s),
        floor=None if c.floor is None else {**c.floor, "transfer": seconds},
        copied_s=seconds,
    )


def marked_measures(capture: Capture, costs: Sequence[StepCost]) -> tuple[Measure, ...]:
    """Return their share of the steps that count, their bytes and their rate."""
    copied = [c for c in costs if c.copied_s is not None]
    time_s, seconds = sum(c.time_s for c in copied), sum(c.copied_s or 0.0 for c in copied)
    if not time_s or not seconds:
        return ()
    first = min(c.step.end_ns - round(c.time_s / NS) for c in copied)
    last = max(c.step.end_ns for c in copied)
    events = [e for e in _marked(capture) if first <= e.t_ns < last]
    moved = sum(number(e, "bytes") or 0.0 for e in events)
    length_s = sum(end - start for start, end in map(_interval, events)) * NS
    return (
        _measure("copies_marked", seconds / time_s, "measured"),
        _measure("copy_bytes_per_step", moved / len(copied), "measured"),
        *((_measure("copy_rate", moved / length_s, "derived"),) if length_s else ()),
    )


def _measure(name: str, value: float, provenance: str) -> Measure:
    return Measure(name, value, MARKED_MEASURES[name][0], provenance, _SOURCE)  # type: ignore[arg-type]
