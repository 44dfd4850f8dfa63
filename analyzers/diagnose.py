"""From a capture to a diagnosis: the one way in for every source."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from stallscope.analyzers.advice import advise
from stallscope.analyzers.benchmark.facts import is_benchmark_only, of_trial
from stallscope.analyzers.benchmark.latency import client_latencies, median_note, rates_note
from stallscope.analyzers.benchmark.measures import benchmark_measures
from stallscope.analyzers.benchmark.others import others_note
from stallscope.analyzers.benchmark.step import all_steps, step_notes
from stallscope.analyzers.benchmark.sweep import build_sweep
from stallscope.analyzers.benchmark.sweep_note import sweep_note
from stallscope.analyzers.cost.held import held_calibration, held_note
from stallscope.analyzers.cost.operator_table import operator_table
from stallscope.analyzers.decision_measures import cause_measures, decision_measures
from stallscope.analyzers.document import document_verdict
from stallscope.analyzers.explain.build import explain
from stallscope.analyzers.gaps import unobserved
from stallscope.analyzers.isolated import without_load
from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.kernel_table import kernel_table
from stallscope.analyzers.kv_copies import copies_measure
from stallscope.analyzers.kv_life import DEFAULT_LENGTHS, allocated_rows, kv_rows, life_stages
from stallscope.analyzers.limits import with_limits
from stallscope.analyzers.load.demand import Demand
from stallscope.analyzers.load.device_demand import is_telemetry_only
from stallscope.analyzers.load.engine_latency import engine_latencies, latency_note
from stallscope.analyzers.load.estimated_work import work_measures_of_samples
from stallscope.analyzers.load.first_token import begun_note, first_token_wait
from stallscope.analyzers.load.in_front import in_front_measures, in_front_note
from stallscope.analyzers.load.kv_cliff import cliff_measures, cliff_note
from stallscope.analyzers.load.offered import unseen_offer
from stallscope.analyzers.load.one_reading import one_reading_note
from stallscope.analyzers.load.preemption import preempts
from stallscope.analyzers.load.projected_pool import projected_measure, projected_note
from stallscope.analyzers.load.put_back import put_back
from stallscope.analyzers.load.sampled_work import mean_step_note
from stallscope.analyzers.load.starved import starved_measure
from stallscope.analyzers.measures import step_measures
from stallscope.analyzers.observe import rule_evidence
from stallscope.analyzers.over_time.build import watch
from stallscope.analyzers.padding import padding_note
from stallscope.analyzers.prepared import Run, prepare
from stallscope.analyzers.put_back_words import put_back_note
from stallscope.analyzers.queue_measures import queue_measures
from stallscope.analyzers.reserved import reserved_note
from stallscope.analyzers.result import (
    CaptureInfo,
    Diagnosis,
    KvRow,
    PhaseBudget,
    Remedy,
    RuleResult,
    SourceInfo,
)
from stallscope.analyzers.rules import evaluate
from stallscope.analyzers.series import build_series
from stallscope.analyzers.stated.engine_figures import engine_measures
from stallscope.analyzers.step.as_calibrated import calibration_note
from stallscope.analyzers.step.budget import phase_budgets
from stallscope.analyzers.step.busy_wait import busy_note
from stallscope.analyzers.step.over_explained import phases_note
from stallscope.analyzers.step.power_cap import power_cap_note
from stallscope.analyzers.step_gaps import gap_notes
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.verdict import GOALS, build_verdict, headline_of, judge_run
from stallscope.analyzers.whatif.replay import build_replay
from stallscope.analyzers.whatif.sampled_gain import growth_measures, sampled_gain, untold_gain
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure


def _info(run: Run) -> CaptureInfo:
    cut = run.capture.cut
    return CaptureInfo(
        sources=_sources(run.capture),
        cut=cut is not None,
        duration_s=_duration_s(run),
        cut_note=cut.note if cut else None,
        empty=run.checked.is_empty,
    )


def _sources(capture: Capture) -> tuple[SourceInfo, ...]:
    if len(capture.sources) < 2:
        return tuple(SourceInfo(s.kind, s.path) for s in capture.sources)
    return tuple(
        SourceInfo(s.kind, s.path, s.offset_ns * 1e-9, s.offset_error_ns * 1e-9)
        for s in capture.sources
    )


def _duration_s(run: Run) -> float | None:
    """Return the run's length: of its rows, else of its device samples; None for a moment."""
    times = [s.t_ns for s in run.capture.device_samples]
    sampled_ns = max(times) - min(times) if times else 0
    span_ns = 0 if run.span.is_instant else run.span.duration_ns
    return (span_ns or sampled_ns) * 1e-9 or None


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
    if goal is not None and goal not in GOALS:
        raise ValueError(f"goal {goal!r} is none of {', '.join(GOALS)}")
    capture = without_load(capture)
    run = prepare(capture, thresholds or Thresholds())
    t = run.thresholds
    judgement = judge_run(run)
    over_time = watch(run)
    rules = _rules(run, judgement.demand)
    compared = (*decision_measures(run, judgement), *cause_measures(run))
    measures = _with_rule_measures((*_measures(run, judgement), *compared), rules)
    replay = None
    if not is_benchmark_only(capture):  # a client's requests tell no admission
        rate = run.throughput.output_tokens_per_s
        replay = build_replay(capture, run.costs, run.cost, rate)
    sampled = sampled_gain(run, judgement)
    verdict = build_verdict(
        run, judgement, over_time, measures, replay=replay, sampled=sampled, goal=goal
    )
    advice = advise(run, verdict, measures, replay, sampled)
    told = engine_latencies(capture, run.span)
    sweep = build_sweep(capture, lambda i: _class_of_trial(capture, i, t))
    return Diagnosis(
        version=version,
        capture=_info(run),
        subject=capture.subject,
        thresholds=t,
        goal=goal,
        verdict=verdict,
        document=document_verdict(
            verdict.bottleneck,
            rules,
            preempts=preempts(capture),
            queues=judgement.load == "overloaded",
            budget_by=_budget_by(run),
        ),
        rules=rules,
        latency={**told, **client_latencies(capture)},
        throughput=run.throughput,
        phases=_phases(run, judgement),
        operators=operator_table(run.costs, run.cost),
        kernels=kernel_table(capture),
        kv_table=_kv_table(run),
        kv_life=life_stages(capture),
        measures=measures,
        remedies=_that_rest_on(measures, advice.remedies),
        wont_help=advice.wont_help,
        not_observable=(
            *run.checked.not_observable,
            *unobserved(capture, run.costs, rules, run.missing),
            *advice.untold,
            *untold_gain(run, judgement, sampled),
            *unseen_offer(capture, judgement.load, judgement.demand, t),
        ),
        windows=over_time.windows,
        changes=over_time.changes,
        notes=(
            *run.checked.notes,
            *one_reading_note(capture),
            *latency_note(told, client_latencies(capture)),
            *put_back_note(put_back(capture.engine_samples)),
            *begun_note(first_token_wait(capture, judgement.demand, run.span)),
            *cliff_note(capture),
            *projected_note(capture, run.span),
            *reserved_note(capture, judgement.load),
            *gap_notes(run.costs),
            *in_front_note(capture, run.span),
            *others_note(capture),
            *sweep_note(capture, sweep),
            *step_notes(capture, run.costs),
            *median_note(capture),
            *rates_note(capture, run.span),
            *mean_step_note(capture, run.cost, run.span),
            *padding_note(run.costs, run.cost),
            *(calibration_note(capture, run.costs) if run.cost is not None else ()),
            *held_note(capture),
            *phases_note(judgement.budgets),
            *power_cap_note(capture, t),
            *busy_note(capture, is_blind=is_telemetry_only(capture)),
        ),
        warnings=_warnings(run),
        series=build_series(run.costs, run.cost),
        explain=explain(
            run,
            judgement,
            headline_of(run, judgement, goal),
            verdict,
            rules=rules,
            measures=measures,
            goal=goal,
        ),
        fitted=held_calibration(capture),
        sweep=sweep,
    )


def _budget_by(run: Run) -> str | None:
    if run.missing is not None:
        return None
    return "achievable" if run.cost is None else run.cost.machine.kind


def _warnings(run: Run) -> tuple[str, ...]:
    """Say what of the subject the run itself contradicts; no step budget rests on it."""
    wrong = run.missing
    if wrong is None or not wrong.is_contradiction:
        return ()
    return (f"{wrong.reason[:1].upper()}{wrong.reason[1:]}. {wrong.how.capitalize()}.",)


def _class_of_trial(capture: Capture, index: int, t: Thresholds) -> str:
    return judge_run(prepare(of_trial(capture, index), t)).bottleneck


def _that_rest_on(measures: Sequence[Measure], remedies: Sequence[Remedy]) -> tuple[Remedy, ...]:
    """Keep of each remedy's evidence what this run has.

    A counter of preemptions that stood still is no evidence of those that the gauges show.
    """
    names = {m.name for m in measures if m.name != "preemptions" or m.value > 0}
    counted = "preemptions" if "preemptions" in names else "preemptions_inferred"
    return tuple(
        dataclasses.replace(
            r,
            evidence=tuple(
                n for n in (counted if n == "preemptions" else n for n in r.evidence) if n in names
            ),
        )
        for r in remedies
    )


def _phases(run: Run, judgement: Judgement) -> tuple[PhaseBudget, ...]:
    if is_benchmark_only(run.capture) or not run.costs:
        of_steps = phase_budgets(run.costs, run.cost)
        return all_steps(of_steps, run.capture) or judgement.budgets
    return with_limits(
        phase_budgets(run.costs, run.cost),
        run.capture,
        run.costs,
        cost=run.cost,
        missing=run.why_no_budget,
        t=run.thresholds,
    )


def _measures(run: Run, judgement: Judgement) -> tuple[Measure, ...]:
    if is_benchmark_only(run.capture):
        load = benchmark_measures(run.capture, judgement.demand, judgement.admission)
        return (*load, *step_measures(run.capture, run.costs, cost=run.cost))
    found = queue_measures(
        run.capture,
        run.costs,
        cost=run.cost,
        demand=judgement.demand,
        admission=judgement.admission,
        span=run.span,
    )
    first = first_token_wait(run.capture, judgement.demand, run.span)
    grown = (
        *(() if first is None else (first,)),
        *copies_measure(run.capture),
        *engine_measures(run.capture),
        *cliff_measures(run.capture, run.span),
        *starved_measure(run.capture, run.span),
        *projected_measure(run.capture, run.span),
        *growth_measures(run, judgement),
        *in_front_measures(run.capture, run.span),
        *work_measures_of_samples(run.capture, run.cost, run.span),
    )
    return (*found, *grown, *step_measures(run.capture, run.costs, cost=run.cost))


def _rules(run: Run, demand: Demand) -> tuple[RuleResult, ...]:
    evidence = rule_evidence(run.capture, run.costs, cost=run.cost, demand=demand, span=run.span)
    return evaluate(evidence, run.thresholds)


def _with_rule_measures(
    measures: tuple[Measure, ...], rules: Sequence[RuleResult]
) -> tuple[Measure, ...]:
    seen = {(m.name, m.side, m.value) for m in measures}
    extra = {(m.name, m.side, m.value): m for r in rules for m in r.measures}
    return (*measures, *(m for key, m in extra.items() if key not in seen))


def _kv_table(run: Run) -> tuple[KvRow, ...]:
    if run.cost is None:
        return allocated_rows(run.capture)
    return (
        *kv_rows(run.cost.spec, run.cost.kv_dtype, DEFAULT_LENGTHS, ranks=run.cost.machine.ranks),
        *allocated_rows(run.capture),
    )
