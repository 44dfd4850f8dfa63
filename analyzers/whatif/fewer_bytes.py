"""What weights or a KV cache in a smaller dtype would buy."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stallscope.analyzers.cost.arithmetic import step_weight_bytes
from stallscope.analyzers.cost.kv_bytes import kv_bytes_per_token
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.result import Gain
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.step.shape import computed_shape


def fewer_weight_bytes(
    costs: Sequence[StepCost], cost: CostModel, dtype: str, tokens_per_s: float | None
) -> Gain | None:
    """Predict throughput with weights in another dtype: each step's floor anew, its rest kept.

    None on measured linears (a CPU's kernels do not get faster in proportion to bytes), from what
    computes in 8 bits (other formats have another peak), where the dtype saves nothing, and where
    no request's token was counted: a run that was cut knows its steps, and of requests only those
    that ended.
    """
    saves = step_weight_bytes(cost.spec, dtype) < step_weight_bytes(cost.spec, cost.dtype)
    if cost.machine.linear_times or _is_narrow(cost) or not saves or not tokens_per_s:
        return None
    if cost.spec.stored.weights != 1.0:  # what was loaded is not of the dtype that was given
        return None
    return _gain(
        costs, cost, CostModel(cost.spec, dtype, cost.kv_dtype, cost.machine), tokens_per_s
    )


def _is_narrow(cost: CostModel) -> bool:
    """Tell whether products compute in fewer bits than 16."""
    stored = cost.spec.quantization if cost.spec.dtype == cost.dtype else None
    return cost.dtype == "fp8" or (stored is not None and stored.activations is True)


def fewer_kv_bytes(
    costs: Sequence[StepCost], cost: CostModel, kv_dtype: str, tokens_per_s: float | None
) -> Gain | None:
    """Predict throughput with a KV cache in another dtype, under the same conditions.

    The room that it frees is not counted.
    """
    saves = kv_bytes_per_token(cost.spec, kv_dtype) < kv_bytes_per_token(cost.spec, cost.kv_dtype)
    if cost.machine.linear_times or not saves or not tokens_per_s:
        return None
    if cost.spec.stored.kv != 1.0:  # the cache is not of the dtype that was given
        return None
    return _gain(
        costs, cost, CostModel(cost.spec, cost.dtype, kv_dtype, cost.machine), tokens_per_s
    )


def _gain(
    costs: Sequence[StepCost], cost: CostModel, other: CostModel, tokens_per_s: float
) -> Gain | None:
    shapes = [computed_shape(c.step, cost.spec.sliding_window) for c in costs]
    known = [s for s in shapes if s is not None]
    before = math.fsum(c.time_s for c in costs)
    saved = math.fsum(cost.step_time(s).floor - other.step_time(s).floor for s in known)
    if len(known) < len(shapes) or not 0 < saved < before:
        return None
    unexplained = math.fsum(c.unexplained_s or 0.0 for c in costs) / before
    after = tokens_per_s * before / (before - saved)
    return Gain("output_tokens_per_s", "tokens/s", tokens_per_s, after, max(0.1, unexplained))
