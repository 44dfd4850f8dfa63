"""From a capture to a diagnosis: the one way in for every source."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.analyzers.chain import build_chain
from stallscope.analyzers.checks import Checked, check
from stallscope.analyzers.confidence import confidence
from stallscope.analyzers.cost.calibration import NoCostModel, build_cost_model
from stallscope.analyzers.cost.operator_table import operator_table
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.document import document_verdict
from stallscope.analyzers.gaps import unobserved
from stallscope.analyzers.judge import Judgement, judge
from stallscope.analyzers.kv_life import DEFAULT_LENGTHS, allocated_rows, kv_rows, life_stages
from stallscope.analyzers.limits import limits_by_goal
from stallscope.analyzers.load.demand import UNKNOWN_DEMAND, Demand, Span, run_span
from stallscope.analyzers.load.latency import latencies, throughput
from stallscope.analyzers.measures import all_measures
from stallscope.analyzers.observe import rule_evidence
from stallscope.analyzers.result import (
    CaptureInfo,
    Diagnosis,
    KvRow,
    Limits,
    RuleResult,
    SourceInfo,
    Throughput,
    Verdict,
    Window,
)
from stallscope.analyzers.rules import evaluate
from stallscope.analyzers.sentences import verdict_sentence
from stallscope.analyzers.series import build_series
from stallscope.analyzers.step.budget import (
    StepCost,
    cost_steps,
    measured_steps,
    overall,
    phase_budgets,
)
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.whatif.remedies import remedies_for, wont_help
from stallscope.analyzers.whatif.replay import Replay, WhatIf, build_replay, lift, try_config
from stallscope.analyzers.windows import judge_windows
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure

_GOALS = ("ttft", "tpot", "throughput")


@dataclass(frozen=True, slots=True)
class _Run:
    """A capture with everything that is worked out before judging."""

    capture: Capture
    checked: Checked
    cost: CostModel | None
    missing: str
    costs: tuple[StepCost, ...]
    span: Span
    thresholds: Thresholds
    throughput: Throughput


def _prepare(capture: Capture, thresholds: Thresholds) -> _Run:
    model = build_cost_model(capture)
    cost = model if isinstance(model, CostModel) else None
    missing = f"{model.reason} ({model.how})" if isinstance(model, NoCostModel) else ""
    costs = cost_steps(measured_steps(capture), cost)
    if cost is not None and any(c.floor is None for c in costs):
        missing = "steps do not say how much context they read (record context_tokens)"
    span = run_span(capture)
    return _Run(
        capture=capture,
        checked=check(capture),
        cost=cost,
        missing=missing,
        costs=costs,
        span=span or Span(0, 0),
        thresholds=thresholds,
        throughput=throughput(capture, span),
    )


def _judge(run: _Run) -> Judgement:
    judgement = judge(
        run.capture,
        run.costs,
        cost=run.cost,
        missing=run.missing,
        span=run.span,
        t=run.thresholds,
    )
    if run.checked.decision is not None:
        return dataclasses.replace(judgement, decision=run.checked.decision)
    return judgement


def _phase(costs: Sequence[StepCost]) -> str:
    """Name the phase that holds most of the step time, or "all"."""
    total = sum(c.time_s for c in costs)
    for phase in ("prefill", "decode", "mixed"):
        if total and sum(c.time_s for c in costs if c.step.phase == phase) >= 0.9 * total:
            return phase
    return "all"


def _replay(run: _Run) -> Replay | None:
    return build_replay(run.capture, run.costs, run.cost, run.throughput.output_tokens_per_s)


def _whatif(judgement: Judgement, replay: Replay | None, t: Thresholds) -> WhatIf | None:
    if replay is None or judgement.admission is None:
        return None
    limit = judgement.decision.reason
    return try_config(replay, lift(replay, limit), t) if limit in ("kv", "seqs", "tokens") else None


def _verdict(
    run: _Run,
    judgement: Judgement,
    windows: tuple[Window, ...],
    measures: tuple[Measure, ...],
    replay: Replay | None,
    goal: str | None,
) -> Verdict:
    t = run.thresholds
    limits = limits_by_goal(
        run.capture, run.costs, judgement, cost=run.cost, missing=run.missing, t=t
    )
    if run.checked.decision is not None:
        only = judgement.bottleneck
        limits = Limits(only, only, only)
    whatif = _whatif(judgement, replay, t)
    found = {m.name: m for m in measures}
    sentence = verdict_sentence(judgement, found, whatif, t)
    bottleneck = judgement.bottleneck
    if goal is not None and getattr(limits, goal) != bottleneck:
        sentence = f"For {goal}: {getattr(limits, goal)}. Over all goals: {sentence}"
        bottleneck = getattr(limits, goal)
    return Verdict(
        bottleneck=bottleneck,
        confidence=confidence(judgement.decision, windows),
        load=judgement.load,
        phase=_phase(run.costs),
        sentence=sentence,
        limits=limits,
        between=judgement.decision.between,
        next_limit=(whatif.next_limit if whatif else None) or judgement.decision.next_class,
        chain=build_chain(judgement, measures),
    )


def _info(run: _Run) -> CaptureInfo:
    cut = run.capture.cut
    return CaptureInfo(
        sources=tuple(SourceInfo(s.kind, s.path) for s in run.capture.sources),
        cut=cut is not None,
        duration_s=run.span.duration_ns * 1e-9,
        cut_note=cut.note if cut else None,
    )


def diagnose(
    capture: Capture,
    *,
    thresholds: Thresholds | None = None,
    goal: str | None = None,
    version: str = "",
) -> Diagnosis:
    """Diagnose a capture.

    `goal` ("ttft", "tpot", "throughput") picks the headline; by default it is throughput's.
    Raises ValueError for another goal.
    """
    if goal is not None and goal not in _GOALS:
        raise ValueError(f"goal {goal!r} is none of {', '.join(_GOALS)}")
    run = _prepare(capture, thresholds or Thresholds())
    t = run.thresholds
    judgement = _judge(run)
    windows = judge_windows(
        capture, run.costs, cost=run.cost, missing=run.missing, span=run.span, t=t
    )
    rules = _rules(run, judgement.demand)
    measures = all_measures(
        capture, run.costs, cost=run.cost, demand=judgement.demand, admission=judgement.admission
    )
    measures = _with_rule_measures(measures, rules)
    replay = _replay(run)
    verdict = _verdict(run, judgement, windows, measures, replay, goal)
    preempts = any(e.kind == "preempt" for e in capture.events)
    budgets = phase_budgets(run.costs, run.cost)
    return Diagnosis(
        version=version,
        capture=_info(run),
        subject=capture.subject,
        thresholds=t,
        goal=goal,
        verdict=verdict,
        document=document_verdict(verdict.bottleneck, rules, preempts=preempts),
        rules=rules,
        latency=latencies(capture),
        throughput=run.throughput,
        phases=budgets,
        operators=operator_table(run.costs, run.cost),
        kv_table=_kv_table(run),
        kv_life=life_stages(capture),
        measures=measures,
        remedies=remedies_for(
            verdict.bottleneck,
            replay=replay,
            cost=run.cost,
            budget=overall(budgets),
            tokens_per_s=run.throughput.output_tokens_per_s,
            t=t,
        ),
        wont_help=wont_help(verdict.bottleneck),
        not_observable=(
            *run.checked.not_observable,
            *unobserved(capture, run.costs, rules, run.missing),
        ),
        windows=windows,
        notes=run.checked.notes,
        series=build_series(run.costs, run.cost),
    )


def _rules(run: _Run, demand: Demand) -> tuple[RuleResult, ...]:
    known = demand if run.span.duration_ns else UNKNOWN_DEMAND
    evidence = rule_evidence(run.capture, run.costs, cost=run.cost, demand=known, span=run.span)
    return evaluate(evidence, run.thresholds)


def _with_rule_measures(
    measures: tuple[Measure, ...], rules: Sequence[RuleResult]
) -> tuple[Measure, ...]:
    seen = {(m.name, m.side, m.value) for m in measures}
    extra = {(m.name, m.side, m.value): m for r in rules for m in r.measures}
    return (*measures, *(m for key, m in extra.items() if key not in seen))


def _kv_table(run: _Run) -> tuple[KvRow, ...]:
    if run.cost is None:
        return allocated_rows(run.capture)
    return (
        *kv_rows(run.cost.spec, run.cost.kv_dtype, DEFAULT_LENGTHS),
        *allocated_rows(run.capture),
    )
