"""The verdict procedure on one span of a run: load first, then what binds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.analyzers.cost.arithmetic import kv_bytes_per_token
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.load.admission import (
    LIMIT_CLASS,
    LIMIT_HELD,
    Admission,
    observe_admission,
)
from stallscope.analyzers.load.demand import (
    Demand,
    Span,
    classify_load,
    is_client_limited,
    observe_demand,
)
from stallscope.analyzers.result import PhaseBudget
from stallscope.analyzers.step.budget import StepCost, overall, phase_budgets
from stallscope.analyzers.step.clocks import clock_ratios, slow_clocks_explain
from stallscope.analyzers.step.contention import with_contention
from stallscope.analyzers.step.indicators import limit_without_budget
from stallscope.analyzers.step.limit import QUALITY, Decision, limit_of_budget
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture


@dataclass(frozen=True, slots=True)
class Judgement:
    """What binds in a span. `decision` rates it; `admission` is set when something queued."""

    load: str
    decision: Decision
    demand: Demand
    admission: Admission | None
    budgets: tuple[PhaseBudget, ...]

    @property
    def bottleneck(self) -> str:
        """The class."""
        return self.decision.bottleneck


def offered_concurrency(capture: Capture, demand: Demand) -> float | None:
    """Return how many clients offered load, where that and what arrived have separate sources.

    Our own load generator's clients are in flight by construction until they have nothing left.
    """
    if demand.provenance == "measured" or capture.subject.concurrency is None:
        return None
    return float(capture.subject.concurrency)


def admission_decision(admission: Admission | None) -> Decision:
    """Decide an overloaded span by the limit that stood at its cap while something waited."""
    if admission is None:
        reason = "requests queue, but nothing recorded tells at which limit"
        both = ("capacity", "scheduling")
        return Decision("undetermined", 0.0, 0.0, None, 0.0, QUALITY["estimated"], reason, both)
    ranked = admission.ranked()
    limit, share = ranked[0]
    next_limit, next_share = ranked[1] if len(ranked) > 1 else (None, 0.0)
    quality = QUALITY[admission.provenance]
    known = [LIMIT_CLASS[name] for name, _ in ranked if name != "unknown"]
    if limit == "unknown" or share < 0.5:
        reason = "requests queue under no limit that was seen at its cap for most of the time"
        between = tuple(dict.fromkeys([*known, "capacity", "scheduling"]))[:2]
        return Decision("undetermined", share, next_share, None, 0.0, quality, reason, between)
    after = LIMIT_CLASS.get(next_limit or "") if next_share > 0.05 else None
    reason = f"{LIMIT_HELD[limit]} {percent(share)} of the time in which requests waited"
    return Decision(LIMIT_CLASS[limit], share, next_share, after, 0.0, quality, reason, limit=limit)


def step_decision(
    capture: Capture, budget: PhaseBudget | None, missing: str, t: Thresholds
) -> Decision:
    """Decide what limits a step: by its budget, else by counters; slow clocks override."""
    if budget is None or not budget.budget:
        return limit_without_budget(capture, t, missing)
    decision = limit_of_budget(budget, t)
    ratio = clock_ratios(capture)
    if ratio is not None and slow_clocks_explain(budget, ratio, t):
        reason = f"clocks ran at {percent(ratio.sm)} (SM) and {percent(ratio.memory)} (memory) "
        reason += "of nominal"
        return Decision("device", decision.share, 0.0, decision.bottleneck, 0.0, 0.7, reason)
    return with_contention(decision, capture)


def _none(demand: Demand, t: Thresholds) -> Decision:
    idle, queued = demand.idle_share or 0.0, demand.queued_share or 0.0
    reason = f"nothing was in flight {percent(idle)} of the time"
    if queued < t.nothing_waits:
        reason += " and nothing waited"
    else:
        reason += f"; in the rest, requests waited {percent(queued)} of their time"
    return Decision("none", idle, 0.0, None, 0.0, QUALITY[demand.provenance], reason)


def _client(demand: Demand, offered: float) -> Decision:
    reason = f"{demand.in_flight or 0.0:.1f} of {offered:.0f} clients had a request in flight on "
    reason += "average, and nothing waited"
    return Decision("client", 1.0, 0.0, None, 0.0, QUALITY[demand.provenance], reason)


def judge(
    capture: Capture,
    costs: Sequence[StepCost],
    *,
    cost: CostModel | None,
    missing: str,
    span: Span,
    t: Thresholds,
) -> Judgement:
    """Judge a span from the steps that lie in it; `missing` says why there is no cost model."""
    demand = observe_demand(capture, span)
    load = classify_load(demand, t)
    budgets = phase_budgets(costs, cost)
    admission: Admission | None = None
    offered = offered_concurrency(capture, demand)
    if is_client_limited(demand, offered, t):
        decision = _client(demand, offered or 0.0)
    elif load in ("idle", "underloaded"):
        decision = _none(demand, t)
    elif load == "overloaded":
        per_token = kv_bytes_per_token(cost.spec, cost.kv_dtype) if cost is not None else None
        admission = observe_admission(capture, span, per_token)
        decision = admission_decision(admission)
    else:
        decision = step_decision(capture, overall(budgets), missing, t)
    return Judgement(load, decision, demand, admission, budgets)
