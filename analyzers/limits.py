"""The limiting class for each goal: TTFT, TPOT, throughput."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.cost.work import of_phases
from stallscope.analyzers.judge import Judgement, step_decision
from stallscope.analyzers.result import Limits
from stallscope.analyzers.step.budget import StepCost, phase_budget
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture


def _of_phases(
    capture: Capture,
    costs: Sequence[StepCost],
    cost: CostModel | None,
    missing: str,
    t: Thresholds,
    phases: tuple[str, ...],
) -> str:
    chosen = of_phases(costs, *phases)
    if not chosen:
        return "undetermined"
    budget = phase_budget("all", chosen, cost, sum(c.time_s for c in chosen))
    return step_decision(capture, budget, missing, t).bottleneck


def limits_by_goal(
    capture: Capture,
    costs: Sequence[StepCost],
    judgement: Judgement,
    *,
    cost: CostModel | None,
    missing: str,
    t: Thresholds,
) -> Limits:
    """Name the limit of each goal.

    Throughput: the verdict itself. TTFT: the admission limit while requests queue, else the steps
    that prefill. TPOT: the steps that decode, whatever the queue, unless running requests are
    preempted for KV room.
    """
    queues = judgement.load == "overloaded"
    ttft = (
        judgement.bottleneck
        if queues
        else _of_phases(capture, costs, cost, missing, t, ("prefill", "mixed"))
    )
    tpot = _of_phases(capture, costs, cost, missing, t, ("decode", "mixed"))
    if judgement.bottleneck == "capacity" and any(e.kind == "preempt" for e in capture.events):
        tpot = "capacity"
    return Limits(ttft=ttft, tpot=tpot, throughput=judgement.bottleneck)
