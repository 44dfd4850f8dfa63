"""What plots draw, reduced to at most 5,000 points a series."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.cost.work import of_phases, work_of
from stallscope.analyzers.result import Roofline, RooflinePoint, Series, StepPoint
from stallscope.analyzers.step.budget import StepCost

MAX_POINTS = 5000


def _timeline(costs: Sequence[StepCost]) -> tuple[StepPoint, ...]:
    """Take the longest step of each stretch of k steps, so that no stall is lost."""
    if not costs:
        return ()
    origin = min(c.step.start_ns for c in costs)
    stride = -(-len(costs) // MAX_POINTS)
    points = []
    for i in range(0, len(costs), stride):
        c = max(costs[i : i + stride], key=lambda c: c.time_s)
        step, total = c.step, c.step.kv_total_bytes
        used = step.kv_used_bytes / total if total and step.kv_used_bytes is not None else None
        points.append(
            StepPoint(
                t_s=(step.start_ns - origin) * 1e-9,
                duration_s=(step.end_ns - step.start_ns) * 1e-9,
                phase=step.phase,
                kv_used=used,
                running=step.running,
                waiting=step.waiting,
            )
        )
    return tuple(points)


def _roofline(costs: Sequence[StepCost], cost: CostModel | None) -> Roofline | None:
    if cost is None:
        return None
    points = []
    for phase in ("prefill", "mixed", "decode"):
        work = work_of(of_phases(costs, phase), cost)
        if work is not None and work.time_s:
            points.append(RooflinePoint(phase, work.flops / work.bytes, work.flops / work.time_s))
    machine = cost.machine
    peak, bandwidth = machine.peak_flops * machine.ranks, machine.bytes_per_s * machine.ranks
    return Roofline(
        peak_flops=peak,
        peak_bytes_per_s=bandwidth,
        kind=machine.kind,
        points=tuple(points),
    )


def build_series(costs: Sequence[StepCost], cost: CostModel | None) -> Series:
    """Reduce the run to its timeline and its place under the roof."""
    return Series(_timeline(costs), _roofline(costs, cost))
