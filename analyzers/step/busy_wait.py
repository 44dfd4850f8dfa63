"""Devices that are busy and do no work: high utilisation, low power, and no token."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping

from stallscope.analyzers.quantities import samples_of, used_samples
from stallscope.analyzers.step.limit import Decision
from stallscope.analyzers.used_devices import busy_by_device
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture

# "Busy" is time with a kernel resident: one multiprocessor that spins makes 100 % (nccl#689). Of a
# hung collective all devices show that, or all but one (libgpuarray#387), or one alone (nccl#1550).
BUSY = 0.95
# Reports of hangs draw a fifth to a quarter of the limit: 129 to 152 of 700 W (nccl#1550), 70 W
# (nccl#968).
LOW_POWER = 0.4


def power_share(capture: Capture) -> float | None:
    """Return the mean power over their limits of the devices that work; None where not sampled."""
    drawn, limits = _by_device(capture, "power_mw"), _by_device(capture, "power_limit_mw")
    shares = [
        statistics.fmean(values) / max(limits[device])
        for device, values in drawn.items()
        if max(limits.get(device, [0.0])) > 0
    ]
    return statistics.fmean(shares) if shares else None


def _by_device(capture: Capture, name: str) -> Mapping[str, list[float]]:
    found: dict[str, list[float]] = {}
    for sample in used_samples(capture, name):
        found.setdefault(sample.device, []).append(sample.value)
    return found


def busiest_share(capture: Capture) -> float | None:
    """Return how busy the busiest device is; None where no counter tells."""
    busy = [statistics.fmean(s.value for s in seen) for seen in busy_by_device(capture).values()]
    return max(busy, default=None)


def busy_waiting(capture: Capture) -> tuple[float, float] | None:
    """Return how busy the busiest device is, and the share of their power limits that all draw.

    None unless one is busy all the time at little power, or where either was not sampled.
    """
    busy, power = busiest_share(capture), power_share(capture)
    if busy is None or power is None or busy < BUSY or power > LOW_POWER:
        return None
    return busy, power


def as_hang(decision: Decision, capture: Capture) -> Decision | None:
    """Take an engine that stands still while its devices are busy for kernels that wait."""
    found = busy_waiting(capture) if decision.limit == "stalled" else None
    if found is None:
        return None
    several = len({s.device for s in samples_of(capture, "power_mw")}) > 1
    what = "a collective that hangs" if several else "a kernel that does not end"
    reason = f"{decision.reason}, yet a device is busy {percent(found[0])} of the time at "
    reason += f"{percent(found[1])} of the power limit: that is {what}, and no work"
    between = ("interconnect", "device") if several else ("device", "host")
    return dataclasses.replace(
        decision, bottleneck="undetermined", reason=reason, between=between, limit=None
    )


def busy_note(capture: Capture, *, is_blind: bool) -> tuple[str, ...]:
    """Say it of devices alone, of which nothing tells whether tokens came out."""
    found = busy_waiting(capture) if is_blind else None
    if found is None:
        return ()
    return (
        f"A GPU is busy {percent(found[0])} of the time at {percent(found[1])} of the power limit: "
        "kernels that only wait (a hung collective, polling) look like that, and so do small ones. "
        "Whether tokens come out tells: give the server's log or metrics beside it.",
    )
