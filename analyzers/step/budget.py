"""Where the time of a phase's steps went: each resource's share, the host's, and the rest."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stallscope.analyzers.classes import PARTS
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.result import BudgetPart, PhaseBudget
from stallscope.analyzers.step.origins import origin
from stallscope.analyzers.step.shape import computed_shape
from stallscope.profiler.capture import Capture, Step
from stallscope.profiler.evidence import BoundSide

NS = 1e-9


@dataclass(frozen=True, slots=True)
class StepCost:
    """A step with its time, the host time that belongs to it, and its floor by part.

    `floor` is None where the cost model or the step's shape is not known; `probed` holds how much
    of its weights and compute was measured on the machine, `excess_s` what measured linears take
    beyond what their bytes and FLOPs explain. `traced` names the parts that a kernel trace
    measured, `copied_s` is the time of copies that the recording marked, None where it marks none.
    """

    step: Step
    time_s: float
    host_s: float
    floor: dict[str, float] | None
    probed: Mapping[str, float] = field(default_factory=dict)
    traced: frozenset[str] = frozenset()
    excess_s: float = 0.0
    copied_s: float | None = None

    @property
    def unexplained_s(self) -> float | None:
        """What floor and host leave."""
        if self.floor is None:
            return None
        return self.time_s - self.host_s - sum(self.floor.values())


def measured_steps(capture: Capture) -> tuple[Step, ...]:
    """Return the steps that count: warm-up left out, in order of start."""
    steps = (s for s in capture.steps if not s.warmup)
    return tuple(sorted(steps, key=lambda s: (s.rank, s.start_ns)))


def _gap_before(previous: Step | None, step: Step) -> float:
    """Return the seconds between two steps in which there was work to do.

    A step that decodes carries requests over from before the gap, and so does a queue left by the
    previous step. A pure prefill after a gap may have just arrived: that gap says nothing.
    """
    if previous is None or previous.rank != step.rank:
        return 0.0
    had_work = step.decode_requests > 0 or bool(previous.waiting)
    return max(0, step.start_ns - previous.end_ns) * NS if had_work else 0.0


def cost_steps(steps: Sequence[Step], cost: CostModel | None) -> tuple[StepCost, ...]:
    """Price each step: its own span plus the gap before it, if that was the host's."""
    costs: list[StepCost] = []
    previous: Step | None = None
    for step in steps:
        gap_s = _gap_before(previous, step)
        shape = computed_shape(step, cost.spec.sliding_window) if cost is not None else None
        floor, probed, excess_s = None, {}, 0.0
        if cost is not None and shape is not None:
            time = cost.step_time(shape)
            floor = {
                "weights": time.weights,
                "kv": time.kv,
                "compute": time.compute,
                "communication": time.communication,
                "transfer": time.transfer,
            }
            probed = {"weights": time.probed_weights, "compute": time.probed_compute}
            excess_s = time.excess
        span_s = (step.end_ns - step.start_ns) * NS
        host_s = (step.host_ns or 0) * NS + gap_s
        costs.append(StepCost(step, span_s + gap_s, host_s, floor, probed, excess_s=excess_s))
        previous = step
    return tuple(costs)


def _parts(
    costs: Sequence[StepCost], cost: CostModel | None, time_s: float
) -> tuple[BudgetPart, ...]:
    if cost is None or any(c.floor is None for c in costs):
        return ()
    totals = dict.fromkeys(PARTS, 0.0)
    for c in costs:
        for part, seconds in (c.floor or {}).items():
            totals[part] += seconds
        totals["host"] += c.host_s
    totals["unexplained"] = time_s - math.fsum(totals.values())
    return tuple(_part(name, totals[name], time_s, cost, costs) for name in PARTS)


def _part(
    name: str, seconds: float, time_s: float, cost: CostModel, costs: Sequence[StepCost]
) -> BudgetPart:
    share = seconds / time_s if time_s else 0.0
    provenance, source = origin(name, seconds, cost, costs)
    side: BoundSide | None = "lower" if provenance == "bound" else None
    return BudgetPart(name, seconds, share, provenance, source, side)


def phase_budget(
    phase: str, costs: Sequence[StepCost], cost: CostModel | None, total_s: float
) -> PhaseBudget:
    """Sum the steps of one phase; `total_s` is the time of all phases."""
    time_s = math.fsum(c.time_s for c in costs)
    return PhaseBudget(
        phase=phase,
        count=len(costs),
        time_s=time_s,
        share=time_s / total_s if total_s else 0.0,
        mean_step_s=time_s / len(costs) if costs else 0.0,
        budget=_parts(costs, cost, time_s),
        excess_s=math.fsum(c.excess_s for c in costs),
        is_host_traced=bool(costs) and all("host" in c.traced for c in costs),
    )


def phase_budgets(costs: Sequence[StepCost], cost: CostModel | None) -> tuple[PhaseBudget, ...]:
    """One budget for each phase that occurred, and "all" when there are several."""
    total_s = math.fsum(c.time_s for c in costs)
    names = [p for p in ("prefill", "mixed", "decode", "other") if _of_phase(costs, p)]
    budgets = [phase_budget(p, _of_phase(costs, p), cost, total_s) for p in names]
    if len(names) > 1:
        budgets.append(phase_budget("all", costs, cost, total_s))
    return tuple(budgets)


def _of_phase(costs: Iterable[StepCost], phase: str) -> list[StepCost]:
    return [c for c in costs if c.step.phase == phase]


def overall(budgets: Sequence[PhaseBudget]) -> PhaseBudget | None:
    """Return the budget over all steps."""
    return budgets[-1] if budgets else None


def repeated(budgets: Sequence[PhaseBudget], count: int) -> tuple[PhaseBudget, ...]:
    """Take budgets of one mean step for `count` of them: what a step took is no other."""
    return tuple(
        dataclasses.replace(
            b,
            count=count,
            time_s=b.time_s * count,
            budget=tuple(dataclasses.replace(p, time_s=p.time_s * count) for p in b.budget),
            excess_s=b.excess_s * count,
        )
        for b in budgets
    )
