"""What to do about a step that memory or arithmetic limits: by what is read, and in which phase."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.result import Remedy
from stallscope.analyzers.step.budget import StepCost, phase_budgets
from stallscope.analyzers.step.limit import compute_phase
from stallscope.analyzers.whatif.cpu_remedies import faster_dtype, more_cores
from stallscope.analyzers.whatif.engine_flags import DEVICES, HALF_KV, IN_4, IN_8, IN_16, PREFIXES
from stallscope.analyzers.whatif.fewer_bytes import fewer_kv_bytes, fewer_weight_bytes
from stallscope.profiler.spec import DeviceSpec

# KV dtype → one of half the width, in words, and the engines' flags for it.
_HALF_KV: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "fp32": ("bf16", "16 bits", {"stallscope": "--kv-dtype bf16"}),
    "bf16": ("fp8", "8 bits", HALF_KV),
    "fp16": ("fp8", "8 bits", HALF_KV),
}
_SMALLER_CHECK = "weight bytes per step fall; compare TPOT before and after on the same prompts"
_KV_CHECK = "KV bytes per token halve; check the answers' quality on your own prompts"
_WEIGHTS = ("weight_bytes_per_step", "mbu_decode", "dram_throughput")
_KV = ("kv_read_bytes_per_decode_step", "kv_bytes_per_token", "mbu_decode")

_HIGHEST_PEAK = ("fp8", "int8", "nvfp4")  # what the flags of 8 bits would set, or above it
_IN_4_BITS = ("int4", "mxfp4", "nvfp4")


def _smaller_weights(
    costs: Sequence[StepCost], cost: CostModel | None, tokens_per_s: float | None
) -> list[Remedy]:
    found = []
    if cost is not None and cost.dtype == "fp32":
        action = "read fewer bytes: weights in 16 bits instead of 32"
        gain = fewer_weight_bytes(costs, cost, "bf16", tokens_per_s)
        found.append(
            Remedy(
                action,
                IN_16,
                gain,
                _SMALLER_CHECK,
                _WEIGHTS,
                cost="precision: check the answers",
            )
        )
    if cost is None or cost.dtype not in _IN_4_BITS:
        action = "read fewer bytes: weights in 4 bits"
        gain = fewer_weight_bytes(costs, cost, "int4", tokens_per_s) if cost else None
        found.append(
            Remedy(
                action,
                IN_4,
                gain,
                _SMALLER_CHECK,
                _WEIGHTS,
                cost="a quality to be checked, and slower kernels at large batches",
            )
        )
    return found


def _smaller_kv(
    costs: Sequence[StepCost], cost: CostModel, tokens_per_s: float | None
) -> list[Remedy]:
    if cost.kv_dtype not in _HALF_KV:
        return []
    dtype, width, flags = _HALF_KV[cost.kv_dtype]
    gain = fewer_kv_bytes(costs, cost, dtype, tokens_per_s)
    return [
        Remedy(
            f"read fewer bytes: a KV cache in {width}",
            flags,
            gain,
            _KV_CHECK,
            _KV,
            cost="a quality to be checked",
        )
    ]


_BATCH = Remedy(
    "read them for more tokens: serve more requests in one batch",
    {"stallscope": "--concurrency", "vllm": "more clients, --max-num-seqs"},
    None,
    "tokens/s grows almost in proportion until arithmetic or KV room binds",
    ("intensity_decode", "ridge", "mbu_decode"),
    cost="TPOT of each request grows, and KV room is needed",
)


def bandwidth_remedies(
    costs: Sequence[StepCost], cost: CostModel | None, tokens_per_s: float | None, least: float
) -> list[Remedy]:
    """Name first what makes up most of the bytes; what takes less than `least` of the time, never.

    A larger batch shares the weights; each request brings its own KV, so where that is most of what
    is read a batch shares little.
    """
    weights = _smaller_weights(costs, cost, tokens_per_s)
    time_s = math.fsum(c.time_s for c in costs)
    if cost is None or not time_s:
        return [*weights, _BATCH]
    share = {
        part: math.fsum((c.floor or {}).get(part, 0.0) for c in costs) / time_s
        for part in ("weights", "kv")
    }
    kv = _smaller_kv(costs, cost, tokens_per_s) if share["kv"] >= least else []
    if share["kv"] > share["weights"]:
        return [*kv, *(weights if share["weights"] >= least else [])]
    return [*weights, *kv, _BATCH]


_PREFIXES = Remedy(
    "do not compute shared prompt prefixes again",
    PREFIXES,
    None,
    "prefix hit rate above 0 and TTFT falls on repeated prefixes",
    ("mfu_prefill", "intensity_prefill"),
    cost="KV room for prefixes that stay",
)


def compute_remedies(
    costs: Sequence[StepCost], cost: CostModel | None, device: DeviceSpec | None = None
) -> list[Remedy]:
    """Name what takes arithmetic away: from prompts, or from the steps of a large batch."""
    phase = compute_phase(phase_budgets(costs, cost))
    if device is not None and device.is_cpu:
        dtypes = faster_dtype(cost.dtype, device.peak_flops, phase) if cost is not None else []
        first = [_PREFIXES] if phase == "prefill" else []
        return [*first, *dtypes, more_cores(phase)]
    latency = "TTFT" if phase == "prefill" else "TPOT"
    dtype = Remedy(
        "compute in a dtype with a higher peak",
        _higher_peak(cost),
        None,
        f"{phase} MFU against the new peak; {latency} before and after",
        (f"mfu_{phase}", f"intensity_{phase}", "ridge"),
        cost="precision: a quality to be checked",
    )
    devices = Remedy(
        "share the arithmetic of a step between more devices",
        DEVICES,
        None,
        "TPOT falls; communication appears in the step budget",
        (f"mfu_{phase}", f"intensity_{phase}", "ridge"),
        cost="more GPUs, and communication in every layer",
    )
    higher = [] if cost is not None and cost.dtype in _HIGHEST_PEAK else [dtype]
    return [_PREFIXES, *higher] if phase == "prefill" else [*higher, devices]


def _higher_peak(cost: CostModel | None) -> Mapping[str, str]:
    """Return the flags, of our own engine only where it does not compute in 16 bits already."""
    if cost is None or cost.dtype == "fp32":
        return IN_8
    return {engine: flag for engine, flag in IN_8.items() if engine != "stallscope"}
