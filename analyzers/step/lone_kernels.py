"""What kernels alone can tell, where no timeline says whether the device waited between them."""

from __future__ import annotations

from stallscope.analyzers.quantities import device_means
from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.analyzers.step.trace import trace_busy
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture

# A framework that launches kernels one by one spends some 5 to 20 µs of the host's time on each:
# where they run for less than this on average, the device waits, unless graphs launch them.
SHORT_NS = 10_000
_CAP = 0.5  # single kernels, or sums without a timeline, are not the run


def mean_length_ns(capture: Capture) -> float | None:
    """Return how long kernels ran on average; copies over links are none."""
    rows = [k for k in capture.kernels if k.kernel_class != "copy"]
    launches = sum(k.launches for k in rows)
    return sum(k.busy_ns for k in rows) / launches if launches else None


def may_wait_for_host(capture: Capture) -> bool:
    """Tell whether kernels are so short that the host may not keep up, and nothing shows it does.

    A timeline would show it.
    """
    length_ns = mean_length_ns(capture)
    return trace_busy(capture) is None and length_ns is not None and length_ns < SHORT_NS


def from_kernel_profiles(capture: Capture, t: Thresholds) -> Decision | None:
    """Decide from what a kernel profiler (ncu) measured, where that is all there is.

    SM throughput is the most that any part of the SM reached, tensor cores included. A kernel that
    uses little of either waits for latency: too small to fill the device. Such kernels are the
    host's where they are short besides: launching takes longer than running them.
    """
    if trace_busy(capture) is not None:
        return None
    means = device_means(capture, ("ncu_sm_throughput", "ncu_dram_throughput"))
    sm, dram = means.get("ncu_sm_throughput"), means.get("ncu_dram_throughput")
    if sm is None and dram is None:
        return None
    used = " and ".join(
        f"{percent(value)} of {what}"
        for what, value in (("the SMs'", sm), ("DRAM's", dram))
        if value is not None
    )
    reason = f"the profiled kernels use {used} throughput"
    if dram is not None and dram >= t.dram_bound and sm is not None and sm < t.tensor_low:
        return _decision("bandwidth", dram, sm, reason)
    if sm is not None and sm >= t.tensor_bound and (dram is None or dram < sm):
        return _decision("compute", sm, dram or 0.0, reason)
    most = max(sm or 0.0, dram or 0.0)
    if None not in (sm, dram) and most < t.tensor_low and may_wait_for_host(capture):
        length = (mean_length_ns(capture) or 0.0) / 1e3
        reason += f" for {length:.1f} µs each: launching the next takes as long"
        return _decision("host", 1.0 - most, most, reason)
    between = ("bandwidth" if (dram or 0.0) >= (sm or 0.0) else "compute", "host")
    reason += ", which tells no limit of the run"
    quality = QUALITY["estimated"]
    return Decision("undetermined", most, 0.0, None, 1.0 - most, quality, reason, between)


def _decision(bottleneck: str, share: float, next_share: float, reason: str) -> Decision:
    quality = QUALITY["estimated"]
    return Decision(bottleneck, share, next_share, None, 1.0 - share, quality, reason, cap=_CAP)


def too_short_to_tell(capture: Capture, bottleneck: str, reason: str) -> Decision:
    """Leave open whether short kernels are limited by what they do or by being launched."""
    length = (mean_length_ns(capture) or 0.0) / 1e3
    reason += (
        f", yet kernels run for {length:.1f} µs each, less than launching one by one takes, and "
        "without a timeline nobody sees whether the device waits"
    )
    between = (bottleneck, "host")
    return Decision("undetermined", 0.0, 0.0, None, 1.0, QUALITY["estimated"], reason, between)
