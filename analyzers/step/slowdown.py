"""Why a GPU lowered its clocks, by the reasons that its driver gives."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from stallscope.analyzers.quantities import used_samples
from stallscope.analyzers.step.clocks import clock_shares, is_slow
from stallscope.analyzers.step.limit import MUCH_UNEXPLAINED, Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture

# Bits of nvmlClocksEventReason…, by what helps against them, the most telling first.
_BITS: Mapping[str, int] = {
    "heat": 0x20 | 0x40,  # software and hardware thermal slowdown
    "power": 0x4 | 0x80,  # software power cap, hardware power brake
    "set": 0x2,  # application clocks
    "hardware": 0x8,  # hardware slowdown, for one of the above that is not told
}
_WORDS: Mapping[str, str] = {
    "heat": "a thermal slowdown",
    "power": "the power cap or a power brake",
    "set": "application clocks that somebody set",
    "hardware": "a hardware slowdown (heat or power)",
}
_IDLE = 0x1  # nvmlClocksEventReasonGpuIdle: nothing runs, and clocks drop for that
_MOSTLY = 0.5  # of the samples
_FIRST = ("heat", "hardware")  # what no GPU is meant to run under, and is quick to check


@dataclass(frozen=True, slots=True)
class Slowdown:
    """A kind of reason, a key of _BITS, and the share of samples that give it."""

    kind: str
    share: float

    @property
    def text(self) -> str:
        """The reason as a noun phrase with its share."""
        return f"{_WORDS[self.kind]} in {percent(self.share)} of the samples"


def main_slowdown(capture: Capture) -> Slowdown | None:
    """Return the reason that most samples give for lower clocks; None where no reason does."""
    masks = [int(s.value) for s in used_samples(capture, "clock_event_reasons")]
    if not masks:
        return None
    shares = {
        kind: sum(bool(m & bits) and not m & _IDLE for m in masks) / len(masks)
        for kind, bits in _BITS.items()
    }
    kind = max(shares, key=lambda k: shares[k])  # the first of equals
    return Slowdown(kind, shares[kind]) if shares[kind] >= _MOSTLY else None


def with_slowdown(decision: Decision, capture: Capture, t: Thresholds) -> Decision:
    """Name the device among the candidates of a step that is open while its GPU is slowed.

    Heat comes first, as a look settles it; a power cap is usual under load, and comes last.
    """
    if decision.bottleneck != "undetermined" or decision.unexplained < MUCH_UNEXPLAINED:
        return decision
    low = {name: share for name, share in clock_shares(capture).items() if is_slow(share, t)}
    slowdown = main_slowdown(capture)
    if not low or slowdown is None or not decision.between or "device" in decision.between:
        return decision
    between = ("device", *decision.between)
    if slowdown.kind not in _FIRST:
        between = (*decision.between, "device")
    names = {"sm": "SM", "memory": "memory"}
    clocks = " and ".join(f"the {names[n]} clock ran at {percent(s)}" for n, s in low.items())
    reason = f"{clocks} of nominal, by {slowdown.text}; {decision.reason}"
    return dataclasses.replace(decision, between=between, reason=reason)
