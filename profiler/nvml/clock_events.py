"""Turn the mask of reasons for slowed clocks into events: when it began, changed and ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stallscope.profiler.capture import DeviceSample, Event

# nvmlClocksEventReason…: those by which the GPU slows itself. Left out are an idle GPU (1), clocks
# that somebody set (2) and a display's (256).
MASK = "clock_event_reasons"
SLOWED: Mapping[int, str] = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x200: "board limit",
    0x400: "reliability",
}


class ClockEvents:
    """Follows one device's mask."""

    def __init__(self) -> None:
        self._last: tuple[str, ...] = ()

    def of(self, sample: DeviceSample) -> Iterator[Event]:
        """Yield a `throttle` event if this sample is the mask and it says something new."""
        if sample.name != MASK:
            return
        mask = int(sample.value)
        reasons = tuple(text for bit, text in SLOWED.items() if mask & bit)
        if reasons != self._last:
            self._last = reasons
            data = {"device": sample.device, "reasons": list(reasons)}
            yield Event(sample.t_ns, "throttle", None, data)
