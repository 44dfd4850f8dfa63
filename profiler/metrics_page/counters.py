"""Counters that never fall: a restart sets the engine's own back, and its rise is added on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stallscope.profiler.capture import EngineSample, Event

_ENDINGS = ("_total", "_sum", "_count")
_STEADY = ("output_tokens_total", "input_tokens_total")
_MADE_GOOD = 0.9  # of a fall: a server that began anew takes as long as it took before
_FLIPS = 2
_SAME_S = 1.0  # a start time is computed from the clock and may waver


def is_counter(name: str) -> bool:
    """Tell a counter from a gauge by our name for it."""
    return name.endswith(_ENDINGS)


@dataclass(slots=True)
class Counters:
    """One engine's counters over pages.

    `restarts` is when it was seen to have begun anew; `flips` counts falls that one step made good,
    as pages of two servers in turn show and no restart does.
    """

    engine: str
    restarts: list[int] = field(default_factory=list)
    flips: int = 0
    _drop: float = 0.0
    _last: dict[str, float] = field(default_factory=dict)
    _before: dict[str, float] = field(default_factory=dict)
    _start: float | None = None

    def take(
        self, t_ns: int, values: Mapping[str, float], start: float | None
    ) -> Iterator[EngineSample]:
        """Yield the next page's counters with what was counted before each restart added."""
        is_new = self._is_new(start)
        if start is None:  # else start times tell servers apart
            self._look_for_flips(values)
        fell = [n for n, v in values.items() if is_counter(n) and v < self._last.get(n, v)]
        if fell or is_new:
            self.restarts.append(t_ns)
        for name in tuple(self._last) if is_new else fell:
            self._before[name] = self._before.get(name, 0.0) + self._last.pop(name)
        self._start = self._start if start is None else start
        for name, value in values.items():
            if is_counter(name):
                self._last[name] = value
                yield EngineSample(t_ns, self.engine, name, self._before.get(name, 0.0) + value)

    def _look_for_flips(self, values: Mapping[str, float]) -> None:
        name = next((n for n in _STEADY if n in values), "")
        before = self._last.get(name)
        step = 0.0 if before is None else values[name] - before
        if step < 0:
            self._drop = -step
        elif self._drop and step >= _MADE_GOOD * self._drop:
            self.flips += 1
            self._drop = 0.0

    def _is_new(self, start: float | None) -> bool:
        if start is None or self._start is None:
            return False
        return abs(start - self._start) > _SAME_S


def restarts(counters: Sequence[Counters]) -> Iterator[Event]:
    """Yield an event for each restart, and one sentence that tells of all.

    Where counters jump back and forth, several servers answered, and no verdict can rest on them.
    """
    if any(one.flips >= _FLIPS for one in counters):
        data = {"sentence": _SEVERAL, "class": "telemetry", "blocks": ["verdict"]}
        yield Event(0, "check", None, data)
        return
    for one in counters:
        for t_ns in one.restarts:
            yield Event(t_ns, "restart", None, {"engine": one.engine})
    count = sum(len(one.restarts) for one in counters)
    if count:
        times = "once" if count == 1 else f"{count} times"
        sentence = (
            f"The server's counters were set back {times}, as a restart does; what was counted "
            "before was added on."
        )
        yield Event(0, "check", None, {"sentence": sentence})


_SEVERAL = (
    "The counters jump back and forth: the address leads to several servers in turn, and a page of "
    "one says nothing of the others; scrape each by its own address."
)
