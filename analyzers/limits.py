"""The limiting class for each goal: TTFT, TPOT, throughput."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.cost.work import of_phases
from stallscope.analyzers.judge import Judgement, step_decision
from stallscope.analyzers.load.device_demand import is_telemetry_only
from stallscope.analyzers.load.preemption import preempts
from stallscope.analyzers.phase_counters import seen_in
from stallscope.analyzers.result import Limits, PhaseBudget
from stallscope.analyzers.step.budget import StepCost, overall, phase_budget
from stallscope.analyzers.step.indicators import CANDIDATES
from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture

PHASES = ("prefill", "mixed", "decode")
_NEARLY_ALL = 0.9  # of the time, from which a counter of the whole is one of the phase


def phase_decision(
    capture: Capture,
    costs: Sequence[StepCost],
    cost: CostModel | None,
    missing: str,
    t: Thresholds,
    phases: tuple[str, ...],
    mean: PhaseBudget | None = None,
) -> Decision:
    """Decide what limits the steps of some phases; `mean` is a sampled server's mean step."""
    chosen = of_phases(costs, *phases)
    if costs and not chosen:
        reason = f"no {' or '.join(phases)} step was recorded"
        quality = QUALITY["estimated"]
        return Decision("undetermined", 0.0, 0.0, None, 1.0, quality, reason, CANDIDATES)
    budget = mean
    if chosen:
        budget = phase_budget("all", chosen, cost, sum(c.time_s for c in chosen))
    if budget is None or not budget.budget:
        capture = _seen_in(capture, costs, phases)
    return step_decision(capture, budget, missing, t)


def _seen_in(capture: Capture, costs: Sequence[StepCost], phases: tuple[str, ...]) -> Capture:
    """Keep the evidence of some phases: their kernels, and counters of their own stretches.

    Where they fill the time, those of the whole run; else another phase's must not speak for them.
    """
    times = [(c.step.phase, c.time_s) for c in costs]
    times = times or [(k.phase, float(k.busy_ns)) for k in capture.kernels]
    total = sum(time for _, time in times)
    if not total or sum(time for phase, time in times if phase in phases) >= _NEARLY_ALL * total:
        return capture
    kernels = tuple(k for k in capture.kernels if k.phase in phases)
    own = seen_in(capture, phases[0]).device_samples
    return dataclasses.replace(capture, kernels=kernels, device_samples=own)


def decisions_by_goal(
    capture: Capture,
    costs: Sequence[StepCost],
    judgement: Judgement,
    *,
    cost: CostModel | None,
    missing: str,
    t: Thresholds,
    have_begun: bool = False,
) -> dict[str, Decision]:
    """Decide the limit of each goal.

    Throughput: the verdict itself. TTFT: the admission limit while requests queue for their first
    token, else the steps that prefill; `have_begun` says that most of those that wait have theirs.
    TPOT: the steps that decode, whatever the queue, unless running requests are preempted for KV
    room. Of a GPU that idles no phase is known, and of a server that was only sampled the mean step
    stands for both.
    """
    if judgement.bottleneck == "none" and is_telemetry_only(capture):
        return dict.fromkeys(("ttft", "tpot", "throughput"), judgement.decision)
    queues = judgement.admission is not None or (
        judgement.load == "overloaded" and judgement.bottleneck == "undetermined"
    )
    mean = overall(judgement.budgets) if not costs else None
    ttft = (
        judgement.decision
        if queues and not have_begun
        else phase_decision(capture, costs, cost, missing, t, ("prefill", "mixed"), mean)
    )
    tpot = phase_decision(capture, costs, cost, missing, t, ("decode", "mixed"), mean)
    if judgement.bottleneck == "capacity" and preempts(capture):
        tpot = judgement.decision
    return {"ttft": ttft, "tpot": tpot, "throughput": judgement.decision}


def with_limits(
    budgets: Sequence[PhaseBudget],
    capture: Capture,
    costs: Sequence[StepCost],
    *,
    cost: CostModel | None,
    missing: str,
    t: Thresholds,
) -> tuple[PhaseBudget, ...]:
    """Say of each phase what limits its steps, judged apart from those of the others."""

    def judged(budget: PhaseBudget) -> PhaseBudget:
        if budget.phase not in PHASES or not of_phases(costs, budget.phase):
            return budget
        found = phase_decision(capture, costs, cost, missing, t, (budget.phase,))
        return dataclasses.replace(budget, bottleneck=found.bottleneck)

    return tuple(map(judged, budgets))


def limits_of(decisions: Mapping[str, Decision]) -> Limits:
    """Name the limits."""
    return Limits(**{goal: decision.bottleneck for goal, decision in decisions.items()})
