"""A power cap that was active: what it slows, and what it leaves alone."""

from __future__ import annotations

from stallscope.analyzers.quantities import samples_of
from stallscope.analyzers.step.clocks import clock_shares, is_slow
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture

_SW_POWER_CAP = 0x4  # nvmlClocksEventReasonSwPowerCap
_OFTEN = 0.05  # of the samples


def capped_share(capture: Capture) -> float | None:
    """Return the share of samples in which the power cap lowered clocks; None where not told."""
    flags = [bool(int(s.value) & _SW_POWER_CAP) for s in samples_of(capture, "clock_event_reasons")]
    return sum(flags) / len(flags) if flags else None


def power_cap_note(capture: Capture, t: Thresholds) -> tuple[str, ...]:
    """Say that a cap with the memory clock intact slows arithmetic, not the reading of memory."""
    share, clocks = capped_share(capture), clock_shares(capture)
    if share is None or share < _OFTEN:
        return ()
    active = f"The power cap was active in {percent(share)} of the samples"
    memory = clocks.get("memory")
    if memory is None:
        return (f"{active}; whether it lowered the memory clock, and so decode, was not sampled.",)
    if is_slow(memory, t):
        return (f"{active}, and the memory clock ran at {percent(memory)} of its highest.",)
    lowered = f", the SM clock at {percent(clocks['sm'])} of its highest" if "sm" in clocks else ""
    return (
        f"{active}{lowered}; the memory clock stood at {percent(memory)}: the cap slows what "
        "computes (prefill), not what reads memory (decode).",
    )
