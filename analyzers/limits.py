"""The limiting class for each goal: TTFT, TPOT, throughput."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.cost.work import of_phases
from stallscope.analyzers.judge import Judgement, step_decision
from stallscope.analyzers.result import Limits
from stallscope.analyzers.step.budget import StepCost, phase_budget
from stallscope.analyzers.step.limit import Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture


def _of_phases(
    capture: Capture,
    costs: Sequence[StepCost],
    cost: CostModel | None,
    missing: str,
    t: Thresholds,
    phases: tuple[str, ...],
) -> Decision:
    chosen = of_phases(costs, *phases)
    budget = None
    if chosen:
        budget = phase_budget("all", chosen, cost, sum(c.time_s for c in chosen))
    elif costs:
        missing = f"no {' or '.join(phases)} step was recorded"
    return step_decision(capture, budget, missing, t)


def decisions_by_goal(
    capture: Capture,
    costs: Sequence[StepCost],
    judgement: Judgement,
    *,
    cost: CostModel | None,
    missing: str,
    t: Thresholds,
) -> dict[str, Decision]:
    """Decide the limit of each goal.

    Throughput: the verdict itself. TTFT: the admission limit while requests queue, else the steps
    that prefill. TPOT: the steps that decode, whatever the queue, unless running requests are
    preempted for KV room.
    """
    queues = judgement.load == "overloaded"
    ttft = (
        judgement.decision
        if queues
        else _of_phases(capture, costs, cost, missing, t, ("prefill", "mixed"))
    )
    tpot = _of_phases(capture, costs, cost, missing, t, ("decode", "mixed"))
    if judgement.bottleneck == "capacity" and any(e.kind == "preempt" for e in capture.events):
        tpot = judgement.decision
    return {"ttft": ttft, "tpot": tpot, "throughput": judgement.decision}


def limits_of(decisions: Mapping[str, Decision]) -> Limits:
    """Name the limits."""
    return Limits(**{goal: decision.bottleneck for goal, decision in decisions.items()})
