"""A decode step as a client sees it: a token's mean time at the mean batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from stallscope.analyzers.benchmark.facts import (
    e2e_s,
    in_flight,
    is_benchmark_only,
    judged_trial,
    latency,
    request_rate,
    tpot_from_ends,
    tpot_s,
)
from stallscope.analyzers.cost.calibration import NoCostModel
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.result import PhaseBudget
from stallscope.analyzers.step.budget import StepCost, cost_steps, overall, phase_budgets, repeated
from stallscope.analyzers.step.limit import QUALITY, Decision, limit_of_budget
from stallscope.analyzers.step.mean_step import mean_step
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, Step
from stallscope.profiler.trial import Trial
from stallscope.profiler.wording import counted, figure

_SEVERAL = 1.2  # gaps between chunks this much longer than a token's time: several tokens a chunk
_APART = 1.2  # TPOT told and TPOT from E2E, TTFT and length further apart than this: counted apart


def step_s(trial: Trial) -> float | NoCostModel:
    """Return what one pass of decode takes, or why the results do not say it."""
    told, ends = tpot_s(trial), tpot_from_ends(trial)
    if told is None:
        return NoCostModel("the results hold no time per output token", "stream the output")
    if (trial.engines or 1) > 1:
        return NoCostModel(
            "several engines share the load, and how is not told", "give one engine's log"
        )
    gap = latency(trial, "itl_s").typical
    several = gap is not None and gap > _SEVERAL * told
    if trial.tokens_per_step is not None:
        return told * max(1.0, trial.tokens_per_step)
    if several or trial.speculative:
        return NoCostModel(
            "chunks hold several tokens (speculative decoding): a token's time is no step's",
            "give the server's log, or results that tell the acceptance length",
        )
    return ends if ends is not None and _is_apart(told, ends) else told


def _is_apart(told: float, ends: float) -> bool:
    return not 1 / _APART <= told / ends <= _APART


def step_notes(capture: Capture, costs: Sequence[StepCost]) -> tuple[str, ...]:
    """Say how the step was found, and where the tool's own figure was not believed."""
    trial = judged_trial(capture) if is_benchmark_only(capture) else None
    if trial is None or not costs:
        return ()
    how = (
        "No step was recorded: one is taken to last a token's mean time at the mean batch "
        f"({counted(batch_size(trial) or 0.0, 'request')} in decode).",
    )
    told, ends = latency(trial, "tpot_s").typical, tpot_from_ends(trial)
    if told is None or ends is None or not _is_apart(told, ends):
        return how
    return (
        *how,
        f"The tool's time per output token ({figure(told * 1e3)} ms) does not fit its own E2E, "
        f"TTFT and lengths ({figure(ends * 1e3)} ms): it counts chunks, or other tokens. The "
        "latter is used.",
    )


def benchmark_costs(capture: Capture, cost: CostModel | None) -> tuple[StepCost, ...] | NoCostModel:
    """Price one decode step of the judged trial, or say why there is none."""
    trial = judged_trial(capture)
    seconds = step_s(trial) if trial is not None else NoCostModel("no trial", "")
    if trial is None or isinstance(seconds, NoCostModel):
        return seconds if isinstance(seconds, NoCostModel) else NoCostModel("no trial", "")
    step = _decode_step(trial, seconds, prompts=0)
    if step is None:
        return NoCostModel(
            "the results do not tell how many requests decoded at once", "add the duration and E2E"
        )
    return cost_steps((step,), cost)


def batch_size(trial: Trial) -> float | None:
    """Return the mean requests in decode: requests a second · (E2E − TTFT)."""
    whole, ttft, rate = e2e_s(trial), latency(trial, "ttft_s").typical, request_rate(trial)
    if whole is None or ttft is None or rate is None or whole <= ttft:
        return None
    return max(1.0, rate * (whole - ttft))


def _decode_step(trial: Trial, seconds: float, prompts: int) -> Step | None:
    """Return a step of the mean batch at mean context, with so many prompt tokens in it."""
    batch, read, written = batch_size(trial), trial.input_tokens, trial.output_tokens
    if batch is None or read is None or written is None or not 0 < seconds < 1e6 or batch > 1e6:
        return None
    rows = round(batch)
    context = rows * round(read + written / 2)
    return mean_step(seconds, rows=rows, context=context, prompts=prompts, prompt_length=read)


def prompts_in_a_step(trial: Trial, seconds: float) -> int:
    """Return the most prompt tokens that a mean step holds beside decode.

    While a request decodes, those in flight beside it are replaced once in their whole time; each
    brings its prompt. Served in lockstep they bring none: this is an upper bound.
    """
    whole, flight = e2e_s(trial), in_flight(trial)
    if not whole or flight is None or trial.input_tokens is None:
        return 0
    return round(max(0.0, flight - 1.0) * trial.input_tokens * min(1.0, seconds / whole))


def with_prompts(
    decision: Decision, capture: Capture, cost: CostModel | None, t: Thresholds
) -> Decision:
    """Keep a decision on the decode step only if the most prompts in it would not change it."""
    trial = judged_trial(capture) if is_benchmark_only(capture) else None
    seconds = step_s(trial) if trial is not None else None
    if trial is None or cost is None or seconds is None or isinstance(seconds, NoCostModel):
        return decision
    prompts = prompts_in_a_step(trial, seconds)
    step = _decode_step(trial, seconds, prompts) if prompts else None
    if step is None:
        return decision
    budget = overall(phase_budgets(cost_steps((step,), cost), cost))
    other = limit_of_budget(budget, t) if budget is not None and budget.budget else decision
    if other.bottleneck == decision.bottleneck:
        return decision
    named = [d.bottleneck for d in (decision, other) if d.bottleneck != "undetermined"]
    between = tuple(dict.fromkeys([*named, *decision.between, *other.between]))[:2]
    reason = (
        f"{decision.reason} if only decode is in a step, but up to {prompts:,} prompt tokens a "
    )
    reason += f"step may be beside it ({other.reason})"
    return dataclasses.replace(
        decision,
        bottleneck="undetermined",
        next_class=None,
        quality=QUALITY["estimated"],
        reason=reason,
        between=between,
    )


def all_steps(budgets: Sequence[PhaseBudget], capture: Capture) -> tuple[PhaseBudget, ...]:
    """Count the one step as often as the trial's tokens took it."""
    trial = judged_trial(capture) if is_benchmark_only(capture) else None
    seconds = step_s(trial) if trial is not None else None
    batch = batch_size(trial) if trial is not None else None
    if trial is None or not isinstance(seconds, float) or batch is None:
        return tuple(budgets)
    tokens = (trial.completed or 0) * max(0.0, (trial.output_tokens or 0.0) - 1.0)
    count = max(1, round(tokens / batch / max(1.0, trial.tokens_per_step or 1.0)))
    return repeated(budgets, count)
