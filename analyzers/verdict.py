"""The verdict on a prepared run: the judgement, its limits by goal, its sentence and chain."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from stallscope.analyzers.chain import build_chain
from stallscope.analyzers.confidence import confidence, grounds
from stallscope.analyzers.findings import finding_of
from stallscope.analyzers.gaps import where_to_look
from stallscope.analyzers.judge import Judgement, judge
from stallscope.analyzers.kernel_mix import lone_mix
from stallscope.analyzers.limits import decisions_by_goal, limits_of
from stallscope.analyzers.load.first_token import first_token_wait, most_have_begun
from stallscope.analyzers.load.one_reading import is_one_reading
from stallscope.analyzers.over_time.build import OverTime
from stallscope.analyzers.over_time.words import changes_text
from stallscope.analyzers.prepared import Run
from stallscope.analyzers.result import Verdict
from stallscope.analyzers.sentences import verdict_sentence
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.step.limit import Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.whatif.replay import Replay, WhatIf, lift, try_config
from stallscope.profiler.evidence import Measure

_BEGINNING = 0.8  # of a run that was cut before one request ended, its beginning is all there is
_MOMENT = 0.65  # the next moment may differ: a burst looks like a queue, turnover like idleness
GOALS = ("ttft", "tpot", "throughput")


def judge_run(run: Run) -> Judgement:
    """Judge the whole run; what a check of the capture found comes first."""
    judgement = judge(
        run.capture,
        run.costs,
        cost=run.cost,
        missing=run.why_no_budget,
        span=run.span,
        t=run.thresholds,
    )
    if run.checked.decision is not None:
        return _alone(judgement, run.checked.decision, branch="check")
    return judgement


def _alone(judgement: Judgement, decision: Decision, *, branch: str = "step") -> Judgement:
    return dataclasses.replace(
        judgement, decision=decision, admission=None, preemption=None, cliff=None, branch=branch
    )


def headline_of(run: Run, judgement: Judgement, goal: str | None) -> Decision:
    """Return the decision behind the headline for a goal: the verdict's, where its class is so."""
    found = judgement.decision if goal is None else _by_goal(run, judgement)[goal]
    return found if found.bottleneck != judgement.bottleneck else judgement.decision


def build_verdict(
    run: Run,
    judgement: Judgement,
    over_time: OverTime,
    measures: tuple[Measure, ...],
    *,
    replay: Replay | None,
    sampled: WhatIf | None,
    goal: str | None,
) -> Verdict:
    """Say what limits the run for a goal, by default for throughput.

    `sampled` is what raising the sequence cap would buy where no replay tells.
    """
    decisions = _by_goal(run, judgement)
    whatif = _whatif(judgement, replay, run.thresholds) or sampled
    sentence = _say(run, judgement, measures, whatif)
    headline = judgement
    if goal is not None and decisions[goal].bottleneck != judgement.bottleneck:
        # Only a step can differ from the verdict, so the queue has no part in this headline.
        headline = _alone(judgement, decisions[goal])
        whatif = None
        own = _say(run, headline, measures, None)
        sentence = f"For {goal.upper()}: {own} For throughput: {sentence}"
    changes = changes_text(over_time.stretches) if run.checked.decision is None else None
    sentence = " ".join(filter(None, (sentence, changes, run.checked.ending)))
    is_whole_run = headline is judgement and run.checked.decision is None
    weighed = grounds(headline.decision, over_time.windows if is_whole_run else (), _most_sure(run))
    return Verdict(
        bottleneck=headline.bottleneck,
        # Nothing recorded is no ground for any confidence.
        confidence=0.0 if run.checked.is_empty else confidence(headline.decision, weighed),
        load="idle" if run.checked.is_empty else judgement.load,
        phase=_phase(run.costs),
        sentence=sentence,
        limits=limits_of(decisions),
        between=headline.decision.between,
        next_limit=(whatif.next_limit if whatif else None) or headline.decision.next_class,
        chain=build_chain(headline, measures, lone_mix(run.capture), run.capture.subject.engine),
        limit=headline.decision.limit,
        finding=finding_of(headline),
        grounds=weighed,
        is_load_seen=judgement.load != "served" or judgement.demand.tells_served,
    )


def _most_sure(run: Run) -> float:
    """Return the most confidence that so much of a run allows."""
    if run.span.is_instant or is_one_reading(run.capture):
        return _MOMENT
    requests = run.capture.requests
    is_begun = run.capture.cut is not None and requests and run.checked.decision is None
    return _BEGINNING if is_begun and all(r.end_ns is None for r in requests) else 1.0


def _by_goal(run: Run, judgement: Judgement) -> Mapping[str, Decision]:
    if run.checked.decision is not None:
        return dict.fromkeys(GOALS, run.checked.decision)
    return decisions_by_goal(
        run.capture,
        run.costs,
        judgement,
        cost=run.cost,
        missing=run.why_no_budget,
        t=run.thresholds,
        have_begun=most_have_begun(first_token_wait(run.capture, judgement.demand, run.span)),
    )


def _say(
    run: Run, judgement: Judgement, measures: tuple[Measure, ...], whatif: WhatIf | None
) -> str:
    found = {m.name: m for m in measures}
    trace = where_to_look(run.capture)
    return verdict_sentence(judgement, found, whatif, trace=trace, t=run.thresholds)


def _whatif(judgement: Judgement, replay: Replay | None, t: Thresholds) -> WhatIf | None:
    limit = judgement.decision.limit
    if replay is None or limit not in ("kv", "seqs", "tokens", "batch"):
        return None
    return try_config(replay, lift(replay, limit), t)


def _phase(costs: Sequence[StepCost]) -> str:
    """Name the phase that holds nearly all of the step time, or "all"."""
    total = sum(c.time_s for c in costs)
    for phase in ("prefill", "decode", "mixed"):
        if total and sum(c.time_s for c in costs if c.step.phase == phase) >= 0.9 * total:
            return phase
    return "all"
