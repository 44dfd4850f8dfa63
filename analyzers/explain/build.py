"""The whole derivation of a verdict, in the order of the procedure."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.explain.cores import explain_cores
from stallscope.analyzers.explain.demand import (
    explain_check,
    explain_client,
    explain_front,
    explain_load,
    explain_sender,
)
from stallscope.analyzers.explain.queue import (
    explain_cliff,
    explain_hang,
    explain_preemption,
    explain_queue,
    explain_standstill,
)
from stallscope.analyzers.explain.result import ExplainStep
from stallscope.analyzers.explain.rules import explain_rules
from stallscope.analyzers.explain.step import explain_clocks, explain_step
from stallscope.analyzers.explain.sureness import explain_confidence
from stallscope.analyzers.judge import BRANCHES, Judgement
from stallscope.analyzers.prepared import Run
from stallscope.analyzers.result import RuleResult, Verdict
from stallscope.analyzers.step.clocks import clock_ratios
from stallscope.analyzers.step.limit import Decision
from stallscope.profiler.evidence import Measure


def explain(
    run: Run,
    judgement: Judgement,
    headline: Decision,
    verdict: Verdict,
    *,
    rules: Sequence[RuleResult],
    measures: Sequence[Measure],
    goal: str | None,
) -> tuple[ExplainStep, ...]:
    """Return the document's rules and the procedure's steps up to the one that decided."""
    t, found = run.thresholds, {m.name: m for m in reversed(measures)}
    told = (
        explain_check(judgement, found),
        explain_sender(judgement, found),
        explain_front(judgement, found, t),
        explain_client(judgement, found, t),
        explain_load(judgement, found, t),
        explain_queue(judgement, found),
        explain_standstill(judgement, found),
        explain_hang(judgement, found),
        explain_step(judgement, found, t),
        explain_clocks(judgement, found, clock_ratios(run.capture), t),
        explain_cores(judgement, found, t),
    )
    steps = [step for step in told if step is not None]
    steps = [step for step in steps if _is_reached(step, judgement)]
    if judgement.branch in ("queue", "standstill", "hang", "step", "samples"):
        lost = explain_preemption(judgement, found, t)
        fell = explain_cliff(judgement, found, t)
        steps += [step for step in (lost, fell) if step is not None]
    if headline is not judgement.decision:
        steps.append(_of_goal(headline, goal))
    return (*explain_rules(rules, t), *steps, explain_confidence(headline, verdict))


def _is_reached(step: ExplainStep, judgement: Judgement) -> bool:
    """Leave out what comes after the step that decided."""
    if step.id not in BRANCHES or step.id == "hang":
        return True
    return BRANCHES.index(step.id) <= BRANCHES.index(judgement.branch)


def _of_goal(headline: Decision, goal: str | None) -> ExplainStep:
    question = f"What limits the steps that count for {(goal or '').upper()}?"
    because = f"{headline.bottleneck}: {headline.reason}"
    return ExplainStep("goal", question, "decides the headline", because)
