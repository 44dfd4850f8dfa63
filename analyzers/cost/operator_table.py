"""FLOPs, bytes and arithmetic intensity of each operator by phase (document, section 3.1)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from stallscope.analyzers.cost.operators import Operator, StepShape
from stallscope.analyzers.cost.roofline import CostModel, OperatorTime
from stallscope.analyzers.cost.work import of_phases
from stallscope.analyzers.result import OperatorRow
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.step.shape import computed_shape


def operator_rows(phase: str, cost: CostModel, shape: StepShape) -> tuple[OperatorRow, ...]:
    """List a step's operators with what binds each and its time over all instances."""
    return tuple(
        OperatorRow(
            phase=phase,
            name=t.operator.name,
            instances=t.operator.instances,
            flops=t.operator.flops,
            bytes=t.operator.bytes,
            intensity=t.operator.intensity,
            bound=_bound(t),
            time_s=t.time_s,
            explained_s=t.explained_s,
        )
        for t in cost.operator_times(shape)
    )


def _bound(time: OperatorTime) -> str:
    """Name what most of its time is due to, as a phase's limit is named; else neither."""
    if time.time_s - time.explained_s > time.explained_s:
        return "neither"
    return "compute" if time.part == "compute" else "memory"


def unpriced_rows(phase: str, operators: Sequence[Operator]) -> tuple[OperatorRow, ...]:
    """List a step's operators where no device is known: counts without time."""
    return tuple(
        OperatorRow(phase, o.name, o.instances, o.flops, o.bytes, o.intensity, None, None)
        for o in operators
    )


def mean_shape(costs: Sequence[StepCost], window: int | None = None) -> StepShape | None:
    """Return the mean step's work, padding included, rounded; None where it was not recorded."""
    shapes = [s for c in costs if (s := computed_shape(c.step, window)) is not None]
    if not shapes:
        return None
    return StepShape(
        tokens=max(1, round(statistics.fmean(s.tokens for s in shapes))),
        logit_rows=round(statistics.fmean(s.logit_rows for s in shapes)),
        kv_read_tokens=round(statistics.fmean(s.kv_read_tokens for s in shapes)),
        attention_pairs=round(statistics.fmean(s.attention_pairs for s in shapes)),
    )


def operator_table(costs: Sequence[StepCost], cost: CostModel | None) -> tuple[OperatorRow, ...]:
    """Describe the mean prefill and decode step of a run."""
    rows: list[OperatorRow] = []
    for phase in ("prefill", "decode"):
        if cost is None:
            break
        shape = mean_shape(of_phases(costs, phase), cost.spec.sliding_window)
        if shape is not None:
            rows += operator_rows(phase, cost, shape)
    return tuple(rows)
