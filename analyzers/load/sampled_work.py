"""A mean step of a server, by samples of its gauges and counters, and where its time goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.analyzers.benchmark.client_step import held_by_client
from stallscope.analyzers.benchmark.facts import client_trial
from stallscope.analyzers.benchmark.step import step_s
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.load.engines import moments
from stallscope.analyzers.load.pool_context import Context, pool_context
from stallscope.analyzers.load.sampled_steps import Interval, intervals
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.result import PhaseBudget
from stallscope.analyzers.step.budget import StepCost, cost_steps, phase_budgets, repeated
from stallscope.analyzers.step.mean_step import mean_step
from stallscope.profiler.capture import Capture, Step
from stallscope.profiler.wording import counted, figure

_SAMPLES, _CLIENT = "the samples", "its client's figures"
_APART = 0.1  # of a figure: by less than this two sources agree
_LEAST_READINGS = 10  # of fewer, the one at each edge is a tenth of the time or more


@dataclass(frozen=True, slots=True)
class SampledStep:
    """A mean step while something ran: its seconds, how many there were, and what was in each.

    `rows` are tokens generated, `prompts` prompt tokens computed, `context` tokens in the KV cache;
    `told_by` says whose figure the seconds are, `held_by` whose the tokens; `gauge` is what the KV
    pool's gauge says of the context.
    """

    seconds: float
    count: float
    rows: float
    prompts: float
    prompt_length: float
    context: float
    told_by: str
    held_by: str
    gauge: Context


def sampled_step(capture: Capture, cost: CostModel, span: Span) -> SampledStep | None:
    """Work out the mean step of one engine in a span; None where samples do not tell all of it.

    A step lasts the mean gap between a request's tokens.
    """
    found = moments(capture.engine_samples)
    if len({name for m in found for name in m.engines}) != 1:
        return None
    busy = [i for i in intervals(found, span) if i.running > 0]
    busy_s, made = sum(i.seconds for i in busy), _rise(busy, "output_tokens_total")
    taken, context = _rise(busy, "input_tokens_total"), pool_context(capture, cost, busy)
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
    rows, prompts, tokens, held_by = made / count, computed / count, context.tokens, _SAMPLES
    is_rough = context.is_coarse or len(busy) < _LEAST_READINGS
    if is_rough and (held := held_by_client(capture, seconds)) is not None:
        (rows, prompts, length, tokens), held_by = held, _CLIENT
    return SampledStep(seconds, count, rows, prompts, length, tokens, told_by, held_by, context)


def _seconds(capture: Capture, busy: Sequence[Interval]) -> tuple[float, str] | None:
    """Return the gap by the engine's own count, else by its gauges, else by a client, and whose.

    Gauges tell it as running requests × time ÷ tokens, while about as many run. Of the first of
    several stretches nothing tells when its requests came.
    """
    gaps, gaps_s = _rise(busy, "itl_s_count"), _rise(busy, "itl_s_sum")
    if gaps and gaps_s:
        return gaps_s / gaps, _SAMPLES
    steady = [i for i in busy if i.is_steady and (i.before is not None or len(busy) == 1)]
    made = _rise(steady, "output_tokens_total")
    if made:
        return sum(i.running * i.seconds for i in steady) / made, _SAMPLES
    trial = client_trial(capture)
    by_client = step_s(trial) if trial is not None else None
    return (by_client, _CLIENT) if isinstance(by_client, float) else None


def _rise(busy: Sequence[Interval], name: str) -> float | None:
    rises = [rise for i in busy if (rise := i.rise(name)) is not None]
    return sum(rises) if rises else None


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
    return repeated(phase_budgets(costs, cost), count)


def mean_step_note(capture: Capture, cost: CostModel | None, span: Span) -> tuple[str, ...]:
    """Say what the mean step is taken to hold, where it stands for the steps."""
    if cost is None or not sampled_costs(capture, cost, span):
        return ()
    found = sampled_step(capture, cost, span)
    if found is None:
        return ()
    takes = f"by {found.told_by} a mean one takes {figure(found.seconds * 1e3, 4)} ms"
    whose = "" if found.held_by == found.told_by else f"by {found.held_by} it "
    by_gauge = found.held_by == _SAMPLES
    context = found.gauge.text if by_gauge else f"{found.context:,.0f} tokens"
    return (
        f"No step was recorded: {takes}, {whose}makes {counted(found.rows, 'token')}, takes in "
        f"{counted(found.prompts, 'prompt token')} and finds {context} in the KV cache."
        + _gauge_differs(found),
    )


def _gauge_differs(found: SampledStep) -> str:
    """Say what the pool's gauge makes of the KV cache, where a client's figures lie outside it."""
    gauge = found.gauge
    most = max(gauge.half_digit, _APART * found.context)
    if found.held_by == _SAMPLES or abs(gauge.tokens - found.context) <= most:
        return ""
    return f" The KV pool's gauge, at the moments that it was read, says {gauge.text}."
