"""A mean step of a server, by samples of its gauges and counters, and where its time goes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.analyzers.benchmark.facts import client_trial
from stallscope.analyzers.benchmark.step import step_s
from stallscope.analyzers.cost.roofline import CostModel, kv_bytes_on_rank
from stallscope.analyzers.load.engines import moments
from stallscope.analyzers.load.pool_use import used_share
from stallscope.analyzers.load.sampled_steps import Interval, intervals
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.result import PhaseBudget
from stallscope.analyzers.stated.pool import pool_tokens
from stallscope.analyzers.step.budget import StepCost, cost_steps, phase_budgets
from stallscope.analyzers.step.mean_step import mean_step
from stallscope.profiler.capture import Capture, Step
from stallscope.profiler.wording import counted, figure


@dataclass(frozen=True, slots=True)
class SampledStep:
    """A mean step while something ran: its seconds, how many there were, and what was in each.

    `rows` are tokens generated, `prompts` prompt tokens computed, `context` tokens in the KV cache;
    `told_by` says whose figure the seconds are.
    """

    seconds: float
    count: float
    rows: float
    prompts: float
    prompt_length: float
    context: float
    told_by: str


def sampled_step(capture: Capture, cost: CostModel, span: Span) -> SampledStep | None:
    """Work out the mean step of one engine in a span; None where samples do not tell all of it.

    A step lasts the mean gap between a request's tokens.
    """
    found = moments(capture.engine_samples)
    if len({name for m in found for name in m.engines}) != 1:
        return None
    busy = [i for i in intervals(found, span) if i.running > 0]
    busy_s, made = sum(i.seconds for i in busy), _rise(busy, "output_tokens_total")
    taken, context = _rise(busy, "input_tokens_total"), _context(capture, cost, busy)
    if not made or taken is None or context is None:
        return None
    timed = _seconds(capture, busy)
    if timed is None:
        return None
    seconds, told_by = timed
    count = busy_s / seconds
    computed = max(0.0, taken - (_rise(busy, "cached_tokens_total") or 0.0))
    ended = _rise(busy, "ttft_s_count") or _rise(busy, "finished_total")
    length = taken / ended if ended else computed / count
    rows, prompts = made / count, computed / count
    return SampledStep(seconds, count, rows, prompts, length, context, told_by)


def _seconds(capture: Capture, busy: Sequence[Interval]) -> tuple[float, str] | None:
    """Return the gap by the engine's own count, else by its gauges, else by a client, and whose.

    Gauges tell it as running requests × time ÷ tokens, while about as many run. Of the first of
    several stretches nothing tells when its requests came.
    """
    gaps, gaps_s = _rise(busy, "itl_s_count"), _rise(busy, "itl_s_sum")
    if gaps and gaps_s:
        return gaps_s / gaps, "the samples"
    steady = [i for i in busy if i.is_steady and (i.before is not None or len(busy) == 1)]
    made = _rise(steady, "output_tokens_total")
    if made:
        return sum(i.running * i.seconds for i in steady) / made, "the samples"
    trial = client_trial(capture)
    by_client = step_s(trial) if trial is not None else None
    return (by_client, "its client's figures") if isinstance(by_client, float) else None


def _rise(busy: Sequence[Interval], name: str) -> float | None:
    rises = [rise for i in busy if (rise := i.rise(name)) is not None]
    return sum(rises) if rises else None


def _context(capture: Capture, cost: CostModel, busy: Sequence[Interval]) -> float | None:
    """Return the mean tokens in the KV cache, from the pool's use and its size."""
    per_token = kv_bytes_on_rank(cost)
    pool = pool_tokens(capture, per_token)
    seen = [
        (i.seconds, share * size)
        for i in busy
        if (share := used_share(i.now)) is not None
        and (size := i.now.get("kv_total_bytes", 0.0) / per_token or pool) is not None
    ]
    total = sum(seconds for seconds, _ in seen)
    return sum(seconds * tokens for seconds, tokens in seen) / total if total else None


def as_step(found: SampledStep) -> Step:
    """Return it as a step, in whole requests and tokens."""
    return mean_step(
        found.seconds,
        rows=max(1, round(found.rows)),
        context=round(found.context),
        prompts=round(found.prompts),
        prompt_length=found.prompt_length,
    )


def sampled_costs(capture: Capture, cost: CostModel | None, span: Span) -> tuple[StepCost, ...]:
    """Price the mean step of a span; nothing where it is not known, or steps were recorded."""
    if cost is None or capture.steps or not capture.engine_samples:
        return ()
    found = sampled_step(capture, cost, span)
    return () if found is None else cost_steps((as_step(found),), cost)


def sampled_budgets(
    capture: Capture, cost: CostModel | None, span: Span
) -> tuple[PhaseBudget, ...]:
    """Split the mean step's time into its parts, counted as often as there were steps."""
    costs = sampled_costs(capture, cost, span)
    found = sampled_step(capture, cost, span) if cost is not None and costs else None
    if found is None:
        return ()
    count = max(1, round(found.count))
    return tuple(
        dataclasses.replace(
            b,
            count=count,
            time_s=b.time_s * count,
            budget=tuple(dataclasses.replace(p, time_s=p.time_s * count) for p in b.budget),
        )
        for b in phase_budgets(costs, cost)
    )


def mean_step_note(capture: Capture, cost: CostModel | None, span: Span) -> tuple[str, ...]:
    """Say what the mean step is taken to hold, where it stands for the steps."""
    if cost is None or not sampled_costs(capture, cost, span):
        return ()
    found = sampled_step(capture, cost, span)
    if found is None:
        return ()
    return (
        f"No step was recorded: by {found.told_by} a mean one takes "
        f"{figure(found.seconds * 1e3, 4)} ms, makes {counted(found.rows, 'token')}, takes in "
        f"{counted(found.prompts, 'prompt token')} and finds {found.context:,.0f} "
        "tokens in the KV cache.",
    )
