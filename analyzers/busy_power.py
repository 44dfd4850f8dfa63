"""A GPU that is busy all the time and draws hardly any power: resident kernels that do no work."""

from __future__ import annotations

import statistics

from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture

BUSY = 0.95
# Of the power limit. An A100 that idles draws 0.15 to 0.2 of it, one in decode of small batches
# about half.
LITTLE_POWER = 0.35


def busy_power_note(capture: Capture) -> tuple[str, ...]:
    """Say so, once for all devices of which it is true."""
    values: dict[str, dict[str, list[float]]] = {}
    for sample in capture.device_samples:
        if sample.name in ("nvml_gpu_util", "power_mw", "power_limit_mw"):
            values.setdefault(sample.device, {}).setdefault(sample.name, []).append(sample.value)
    found = []
    for device, by_name in values.items():
        if len(by_name) < 3:
            continue
        busy, drawn, limit = (
            statistics.fmean(by_name[n]) for n in ("nvml_gpu_util", "power_mw", "power_limit_mw")
        )
        if busy >= BUSY and limit and drawn <= LITTLE_POWER * limit:
            found.append((drawn / limit, device))
    if not found:
        return ()
    most, device = max(found)
    who = f"{device} is" if len(found) == 1 else f"{len(found)} GPUs are"
    return (
        f"{who} busy all the time at {percent(most)}{'' if len(found) == 1 else ' or less'} of the "
        "power limit. Busy means that a kernel is resident, not that it works: a collective that "
        "waits for a peer, or one block that spins, looks the same. If no token is "
        "made meanwhile, it hangs (NCCL_DEBUG=INFO, py-spy dump --native).",
    )
