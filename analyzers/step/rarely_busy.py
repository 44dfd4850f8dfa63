"""Device counters alone that show too little at work for the device itself to be the limit."""

from __future__ import annotations

from stallscope.analyzers.load.device_demand import is_telemetry_only
from stallscope.analyzers.step.limit import Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.used_devices import BUSY_COUNTERS, busy_by_device
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture

# What keeps a device waiting: its host, copies (no kernels), or clients that ask for little.
BEFORE_DEVICE = ("host", "interconnect", "client")


def rarely_busy(capture: Capture, t: Thresholds, missing: str) -> Decision | None:
    """Exclude bandwidth and compute where no sample shows a kernel at work half of the time.

    A sample's busy time bounds what kernels take of it from above, whatever they wait for inside.
    """
    if not is_telemetry_only(capture):
        return None
    found = [s for samples in busy_by_device(capture).values() for s in samples]
    samples = [s.value for s in found if s.name in BUSY_COUNTERS]
    if not samples or len(samples) < len(found) or max(samples) >= t.kernel_idle:
        return None
    reason = (
        f"a kernel ran {percent(max(samples))} of the time at most, too little for bandwidth or "
        f"compute to limit; what kept the device waiting is not seen: {missing}"
    )
    return Decision("undetermined", 0.0, 0.0, None, 1.0, 0.4, reason, between=BEFORE_DEVICE)
