"""MFU and MBU of a set of steps: the work that must be done over what the device could do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stallscope.analyzers.cost.operators import StepShape, step_operators
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.step.shape import step_shape
from stallscope.profiler.evidence import Measure
from stallscope.profiler.wording import figure


@dataclass(frozen=True, slots=True)
class Work:
    """FLOPs and bytes that must move (weights once a step, KV once a request) in `time_s`."""

    flops: float
    weight_bytes: float
    kv_bytes: float
    time_s: float

    @property
    def bytes(self) -> float:
        """Bytes that must move."""
        return self.weight_bytes + self.kv_bytes


def shape_flops(cost: CostModel, shape: StepShape) -> float:
    """Return the FLOPs of one step."""
    operators = step_operators(cost.spec, shape, dtype=cost.dtype, kv_dtype=cost.kv_dtype)
    return math.fsum(o.instances * o.flops for o in operators)


def _bytes(cost: CostModel, shape: StepShape) -> tuple[float, float]:
    """Weights and KV. A step that samples nothing does not read the LM head."""
    operators = step_operators(cost.spec, shape, dtype=cost.dtype, kv_dtype=cost.kv_dtype)
    weights = math.fsum(o.instances * o.weight_bytes for o in operators)
    return weights, math.fsum(o.instances * o.kv_bytes for o in operators)


def work_of(costs: Sequence[StepCost], cost: CostModel) -> Work | None:
    """Sum the work of steps; None when a shape was not recorded, or the steps took no time."""
    shapes = [step_shape(c.step, cost.spec.sliding_window) for c in costs]
    known = [s for s in shapes if s is not None]
    time_s = math.fsum(c.time_s for c in costs)
    if not time_s or len(known) < len(shapes):
        return None
    moved = [_bytes(cost, s) for s in known]
    return Work(
        flops=math.fsum(shape_flops(cost, s) for s in known),
        weight_bytes=math.fsum(weights for weights, _ in moved),
        kv_bytes=math.fsum(kv for _, kv in moved),
        time_s=time_s,
    )


def mbu(work: Work, cost: CostModel, name: str = "mbu") -> Measure:
    """Bytes that must move / (time × peak bandwidth): a lower bound on DRAM throughput."""
    peak = cost.machine.bytes_per_s * cost.machine.ranks
    source = (
        f"bytes that must move / (step time × {cost.machine.kind} {figure(peak / 1e9, 4)} GB/s)"
    )
    return Measure(name, work.bytes / work.time_s / peak, "fraction", "bound", source, "lower")


def mfu(work: Work, cost: CostModel, name: str = "mfu") -> Measure:
    """Model FLOPs / (time × peak dense FLOP/s at the run's dtype): a lower bound on SM activity."""
    peak = cost.machine.peak_flops * cost.machine.ranks
    source = f"model FLOPs / (step time × {cost.machine.kind} {figure(peak / 1e12, 4)} TFLOP/s)"
    return Measure(name, work.flops / work.time_s / peak, "fraction", "bound", source, "lower")


def of_phases(costs: Iterable[StepCost], *phases: str) -> list[StepCost]:
    """Pick the steps of some phases."""
    return [c for c in costs if c.step.phase in phases]
