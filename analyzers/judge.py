"""The verdict procedure on one span of a run: load first, then what binds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.analyzers.benchmark.demand import benchmark_demand, late_sender
from stallscope.analyzers.benchmark.facts import is_benchmark_only, judged_trial
from stallscope.analyzers.benchmark.facts import offered as offered_in
from stallscope.analyzers.benchmark.queue import burst_admission, unseen_limit
from stallscope.analyzers.benchmark.step import with_prompts
from stallscope.analyzers.cost.roofline import CostModel, kv_bytes_on_rank
from stallscope.analyzers.load.admission import observe_admission, sees_queue
from stallscope.analyzers.load.demand import (
    Demand,
    classify_load,
    is_client_limited,
    observe_demand,
)
from stallscope.analyzers.load.estimated_work import decide_by_estimates
from stallscope.analyzers.load.in_front import decide_in_front
from stallscope.analyzers.load.kv_cliff import Cliff, cliff_decision, worst_cliff
from stallscope.analyzers.load.pool_use import pool_measures
from stallscope.analyzers.load.preemption import Preemption, observe_preemption
from stallscope.analyzers.load.projected_pool import observe_projected
from stallscope.analyzers.load.queue_limits import LIMIT_CLASS, LIMIT_HELD, Admission
from stallscope.analyzers.load.sampled_work import sampled_budgets
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.load.standstill import standstill_share
from stallscope.analyzers.load.starved import decide_starved
from stallscope.analyzers.load.weights_read import decide_by_weights
from stallscope.analyzers.no_limit import by_client, with_room
from stallscope.analyzers.result import PhaseBudget
from stallscope.analyzers.step.agreement import with_counters
from stallscope.analyzers.step.budget import StepCost, overall, phase_budgets
from stallscope.analyzers.step.busy_wait import as_hang
from stallscope.analyzers.step.clocks import clock_ratios, slow_clocks
from stallscope.analyzers.step.contention import with_contention
from stallscope.analyzers.step.core_wait import core_wait, taken_cores
from stallscope.analyzers.step.indicators import CANDIDATES, limit_without_budget
from stallscope.analyzers.step.limit import QUALITY, Decision, limit_of_budget
from stallscope.analyzers.step.over_explained import with_phases
from stallscope.analyzers.step.slowdown import main_slowdown, with_slowdown
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture

_WORTH_SAYING = 0.01
_RATE_ALONE = 0.7  # confidence: of eight labelled captures that show no more, five were so
_NEARLY_FULL = 0.80  # of a KV pool: below it there is room for every usual request
MOST = 0.5  # of the waiting time a limit must explain; of the run, a queue must stand


# The steps of the procedure that may decide, in order; docs/verdict.md tells them.
BRANCHES = (
    *("check", "sender", "front", "client", "load", "queue", "standstill", "hang", "step"),
    "samples",
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What binds in a span.

    `decision` rates it; `admission` is set when something queued, `preemption` when its cost
    decided, `cliff` when that of a full pool did. `branch` names the step of the procedure that
    decided before that, one of BRANCHES.
    """

    load: str
    decision: Decision
    demand: Demand
    admission: Admission | None
    budgets: tuple[PhaseBudget, ...]
    preemption: Preemption | None = None
    branch: str = "step"
    cliff: Cliff | None = None

    @property
    def is_overruled(self) -> bool:
        """Whether what a full pool costs decided, and not the branch."""
        return self.preemption is not None or self.cliff is not None

    @property
    def bottleneck(self) -> str:
        """The class."""
        return self.decision.bottleneck


def offered_concurrency(capture: Capture) -> float | None:
    """Return how many clients offered load, where less than that can have arrived.

    Our own load generator's clients are in flight by construction until they have nothing left.
    """
    is_own = capture.subject.engine == "builtin" or "load_generator" in capture.meta
    offered = capture.subject.concurrency
    if is_own or offered is None:
        return None
    trial = judged_trial(capture)
    return float(offered) if trial is None else offered_in(trial, offered)


def by_class(admission: Admission) -> list[tuple[str, float]]:
    """Sum the shares by class, largest first; "unknown" stays apart."""
    totals: dict[str, float] = {}
    for limit, share in admission.ranked():
        name = LIMIT_CLASS.get(limit, limit)
        totals[name] = totals.get(name, 0.0) + share
    return sorted(totals.items(), key=lambda item: (-item[1], item[0] == "unknown", item[0]))


def admission_decision(
    admission: Admission | None, *, is_roomy: bool = False, is_moment: bool = False
) -> Decision:
    """Decide an overloaded span by the limit that stood at its cap while something waited.

    Where the pool is known to be `is_roomy` throughout, an unknown limit is not its room.
    """
    both = ("scheduling", "compute") if is_roomy else ("capacity", "scheduling")
    if admission is None:
        reason = "requests queue, but nothing recorded tells at which limit"
        return Decision("undetermined", 0.0, 0.0, None, 0.0, QUALITY["estimated"], reason, both)
    ranked = by_class(admission)
    bottleneck, share = ranked[0]
    after, next_share = ranked[1] if len(ranked) > 1 else (None, 0.0)
    quality = QUALITY[admission.provenance]
    if bottleneck == "unknown" or share < MOST:
        reason = "requests queue under no limit that was seen at its cap"
        reason += "" if is_moment else " for most of the time"
        known = [name for name, _ in ranked if name != "unknown"]
        between = tuple(dict.fromkeys([*known, *both]))[:2]
        most, more = ([s for name, s in ranked if name != "unknown"] + [0.0, 0.0])[:2]
        return Decision("undetermined", most, more, None, 0.0, quality, reason, between)
    next_class = after if after != "unknown" and next_share > 0.05 else None
    limit = next(name for name, _ in admission.ranked() if LIMIT_CLASS.get(name) == bottleneck)
    reason = f"{LIMIT_HELD[limit]} {percent(share)} of the time in which requests waited"
    # A queue that stood only now and then says less about the whole.
    quality *= min(1.0, admission.share_waiting / MOST)
    unseen = admission.shares.get("unknown", 0.0)
    return Decision(bottleneck, share, next_share, next_class, unseen, quality, reason, limit=limit)


def _of_rate_alone(decision: Decision, budgets: Sequence[PhaseBudget], t: Thresholds) -> Decision:
    """Be less sure of prompts where no step budget says that their arithmetic takes the time.

    A host or a link may set the rate at which they are taken in as well.
    """
    budget = overall(budgets)
    if decision.limit != "prefill":
        return decision
    if budget is not None and budget.budget and limit_of_budget(budget, t).bottleneck == "compute":
        return decision
    return dataclasses.replace(decision, cap=min(decision.cap, _RATE_ALONE))


def is_roomy(capture: Capture, span: Span) -> bool:
    """Tell whether sampled KV pools never were nearly full; False where nothing tells."""
    found = {m.name: m.value for m in pool_measures(capture, span)}
    return found.get("kv_used_peak", 1.0) < _NEARLY_FULL


def preemption_decision(found: Preemption, instead: Decision, t: Thresholds) -> Decision:
    """Name the full KV pool the first cause of what else limits: its preemptions cost too much."""
    reason = "running requests are preempted"
    if found.recompute_share is not None:
        again = percent(found.recompute_share)
        reason += f", prefilling them again takes {again} of step time"
    if (found.wait_share or 0.0) >= _WORTH_SAYING:
        reason += f", and they wait {percent(found.wait_share or 0.0)} of the requests' time"
    after = instead.bottleneck if instead.bottleneck != "undetermined" else None
    line, quality = t.queue_wait_share, QUALITY["derived"]
    return Decision("capacity", found.cost, line, after, 0.0, quality, reason, limit="kv")


def step_decision(
    capture: Capture,
    budget: PhaseBudget | None,
    missing: str,
    t: Thresholds,
    span: Span | None = None,
) -> Decision:
    """Decide what limits a step: by its budget, else by counters.

    Slow clocks override, and cores that others had over the span, by default the whole run.
    """
    if budget is None or not budget.budget:
        decision = limit_without_budget(capture, t, missing)
        is_blind = decision.between == CANDIDATES
        return with_slowdown(decision, capture, t) if is_blind else decision
    decision = limit_of_budget(budget, t)
    ratio = clock_ratios(capture)
    slow = slow_clocks(budget, ratio, decision, t) if ratio is not None else None
    if slow is not None:
        why = main_slowdown(capture)
        reason = slow.reason if why is None else f"{slow.reason}, by {why.text}"
        return dataclasses.replace(slow, reason=reason)
    waited = core_wait(capture, span)
    taken = None if waited is None else taken_cores(budget, decision, waited, t)
    return taken or with_slowdown(with_contention(decision, capture), capture, t)


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
    demand = benchmark_demand(capture) or observe_demand(capture, span)
    load = classify_load(demand, t)
    budgets = phase_budgets(costs, cost) or sampled_budgets(capture, cost, span)
    late = late_sender(capture, load)
    if late is not None:
        return Judgement(load, late, demand, None, budgets, branch="sender")
    outside = decide_in_front(capture, demand, span, t)
    if outside is not None:
        return Judgement(load, outside, demand, None, budgets, branch="front")
    offered = offered_concurrency(capture)
    if is_client_limited(demand, offered, t):
        decision = by_client(demand, offered or 0.0)
        return Judgement(load, decision, demand, None, budgets, branch="client")
    if load in ("idle", "underloaded"):
        return Judgement(load, with_room(demand, t), demand, None, budgets, branch="load")
    admission = _admission(capture, cost, span) if load == "overloaded" else None
    if load == "overloaded" and not _saw_no_queue(capture, span):
        is_blind = admission is None and is_benchmark_only(capture)
        unseen = unseen_limit(capture) if is_blind else None
        decision = unseen or admission_decision(
            admission, is_roomy=is_roomy(capture, span), is_moment=demand.is_moment
        )
        if decision.limit in ("prefill", "tokens") and observe_projected(capture, span) is not None:
            decision = dataclasses.replace(decision, next_class="capacity")
        decision, branch = _of_rate_alone(decision, budgets, t), "queue"
    elif load == "overloaded" and (demand.idle_share or 0.0) >= t.underloaded_share:
        decision, branch = with_room(demand, t), "load"
    elif (stood := standstill_share(capture.engine_samples, span)) >= MOST:
        decision, branch = _standstill(stood, demand), "standstill"
    else:
        budget, branch = overall(budgets), "step"
        decision = step_decision(capture, budget, missing, t, span)
        if budget is not None and budget.budget:  # else the counters decided already
            decision = with_counters(decision, capture, t)
            decision = with_prompts(decision, capture, cost, t)
            decision = with_phases(decision, budgets)
        if decision.bottleneck == "undetermined" and not costs:
            sampled = decide_starved(capture, span) or _by_samples(capture, cost, span, t)
            decision, branch = (decision, branch) if sampled is None else (sampled, "samples")
    hang = as_hang(decision, capture)
    if hang is not None:
        decision, branch = hang, "hang"
    lost = observe_preemption(capture, costs, cost, span)
    if lost is None or lost.cost < t.queue_wait_share or decision.limit == "kv":
        found = Judgement(load, decision, demand, admission, budgets, branch=branch)
        return _by_cliff(found, capture, span, t)
    decision = preemption_decision(lost, decision, t)
    return Judgement(load, decision, demand, admission, budgets, lost, branch)


def _by_cliff(judgement: Judgement, capture: Capture, span: Span, t: Thresholds) -> Judgement:
    """Name the full pool the first cause where the engine makes far less with it."""
    cliff = worst_cliff(capture, span)
    if cliff is None or cliff.lost(span) < t.queue_wait_share or judgement.decision.limit == "kv":
        return judgement
    decision = cliff_decision(cliff, span, judgement.decision, t)
    return dataclasses.replace(judgement, decision=decision, cliff=cliff)


def _standstill(share: float, demand: Demand) -> Decision:
    reason = f"no token was counted for {percent(share)} of the time in which requests were there"
    reason += f" ({demand.in_flight or 0.0:.1f} on average)"
    quality = QUALITY["derived"]
    return Decision("scheduling", share, 0.0, None, 0.0, quality, reason, limit="stalled")


def _by_samples(
    capture: Capture, cost: CostModel | None, span: Span, t: Thresholds
) -> Decision | None:
    return decide_by_weights(capture, cost, span, t) or decide_by_estimates(capture, span, t)


def _admission(capture: Capture, cost: CostModel | None, span: Span) -> Admission | None:
    if is_benchmark_only(capture):
        return burst_admission(capture)
    per_token = kv_bytes_on_rank(cost) if cost is not None else None
    return observe_admission(capture, span, per_token)


def _saw_no_queue(capture: Capture, span: Span) -> bool:
    """Tell whether the steps of a span all say that nothing waited, whatever requests say."""
    steps = [s for s in capture.steps if not s.warmup and span.overlap_ns(s.start_ns, s.end_ns)]
    return sees_queue(steps) and not any(s.waiting for s in steps)
