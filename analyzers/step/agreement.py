"""Whether device counters agree with what a step's budget says limits it."""

from __future__ import annotations

import dataclasses

from stallscope.analyzers.quantities import (
    DRAM_THROUGHPUT,
    SM_THROUGHPUT,
    TENSOR_ACTIVE,
    Quantity,
    observe,
)
from stallscope.analyzers.step.limit import MOST_SURE, Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import both, percent
from stallscope.profiler.capture import Capture

# A part's share of the step is the throughput that its counter should show, as both are against
# the peak. Counters average over gaps and other phases, so less than this much of it still agrees.
_AGREES = 0.75
_CONTRADICTS = 0.5
_BUSY = Quantity(("dcgm_gr_engine_active", "gpu_busy", "nvml_gpu_util"))


def _value(capture: Capture, name: str, quantity: Quantity) -> float | None:
    return next((m.value for m in observe(capture, name, quantity) if m.side is None), None)


def _throughput(seen: float | None, share: float) -> int:
    """Return 1 where a counter agrees with a share of the peak, -1 where it contradicts it."""
    if seen is None or _CONTRADICTS * share <= seen < _AGREES * share:
        return 0
    return 1 if seen >= _AGREES * share else -1


def _verdict(
    bottleneck: str, share: float, counters: dict[str, float | None], t: Thresholds
) -> int:
    dram, sm, tensor = counters["DRAM"], counters["SMs"], counters["tensor cores"]
    if bottleneck == "bandwidth":
        # Cores this busy bind themselves.
        if tensor is not None and tensor >= t.tensor_bound:
            return -1
        return _throughput(dram, share)
    if bottleneck == "compute":
        # Idle tensor cores say nothing of arithmetic that may not run on them.
        by_sm, by_tensor = _throughput(sm, share), max(0, _throughput(tensor, share))
        return by_sm or by_tensor
    return 0


def _host(busy: float | None, share: float) -> int:
    """A busy time only bounds the device's use from above: it can agree that the device waits."""
    return 1 if busy is not None and busy <= 1.0 - _AGREES * share else 0


def with_counters(decision: Decision, capture: Capture, t: Thresholds) -> Decision:
    """Raise the quality of a budget's decision by counters that agree; lower it and say otherwise.

    Two sources that are independent are both wrong less often; two that contradict each other say
    that the byte model, the device or a counter is not what it is taken for.
    """
    counters = {
        "DRAM": _value(capture, "dram_throughput", DRAM_THROUGHPUT),
        "SMs": _value(capture, "sm_throughput", SM_THROUGHPUT),
        "tensor cores": _value(capture, "tensor_active", TENSOR_ACTIVE),
    }
    share = min(1.0, decision.share)
    if decision.bottleneck == "host":
        agrees = _host(_value(capture, "gpu_busy", _BUSY), share)
    else:
        agrees = _verdict(decision.bottleneck, share, counters, t)
    if agrees > 0:
        quality = 1.0 - (1.0 - decision.quality) / 2
        return dataclasses.replace(decision, quality=quality, cap=MOST_SURE)
    if agrees == 0:
        return decision
    seen = [f"{name} at {percent(v)}" for name, v in counters.items() if v is not None]
    reason = f"{decision.reason}, yet counters show {both(seen)}: check dtype, model and device"
    return dataclasses.replace(decision, quality=decision.quality / 4, reason=reason)
