"""What lifting a limit would buy: the simulated change, applied to what was measured."""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stallscope.analyzers.cost.drift import drift
from stallscope.analyzers.cost.roofline import CostModel, kv_bytes_on_rank
from stallscope.analyzers.load.queue_limits import LIMIT_CLASS
from stallscope.analyzers.result import Gain
from stallscope.analyzers.schedule import SchedulerConfig
from stallscope.analyzers.stated.pool import stated_tokens
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.whatif.simulate import Load, Overhead, Simulated, simulate, steps_needed
from stallscope.profiler.capture import Capture

# A fit repeats the run that it was fitted on, so its own miss says little about other limits. Real
# runs under the raised limit came within 12 % of a prediction from several batch sizes.
LEAST_ERROR = 0.15
_BLOCK = 16  # tokens per KV block, where the engine does not say
_MAX_STEPS = 20_000  # a simulation longer than this uses the first requests only


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The gain from one change and the limit that binds after it.

    Where it is a bound, the gain lies between none and its value with its error.
    """

    gain: Gain
    next_limit: str | None
    is_bound: bool = False


@dataclass(frozen=True, slots=True)
class Replay:
    """A run as the simulator sees it: load, limits, cost, and two ways to extrapolate overhead.

    Where the run's batch sizes stayed within a factor of two, nothing observed tells how overhead
    grows with the batch: `low` keeps it per step, `high` lets it grow with the requests. Else both
    are the fit.
    """

    load: Load
    config: SchedulerConfig
    cost: CostModel
    low: Overhead
    high: Overhead
    measured_tokens_per_s: float
    most_in_flight: int  # requests in the system at once, as observed
    seen: int  # requests that came, those without a token and those that a cut left open too
    ended: int  # of them, those whose length is known, as they were answered to the end
    drift: float = 0.0  # how far the machine's speed moved during the run


def _fit_overhead(costs: Sequence[StepCost]) -> tuple[Overhead, Overhead]:
    decode = [c for c in costs if c.step.phase == "decode" and c.step.decode_requests]
    prompt = [c for c in costs if c.step.prefill_tokens]
    batches = np.array([c.step.decode_requests for c in decode], dtype=float)
    rest = np.array([_rest_s(c) for c in decode])
    if len(decode) and batches.max() >= 2 * batches.min():
        slope = max(0.0, float(np.polyfit(batches, rest, 1)[0]))
        low = high = Overhead(float(np.mean(rest)) - slope * float(np.mean(batches)), slope)
    elif len(decode):
        mean = float(np.mean(rest))
        low, high = Overhead(mean), Overhead(0.0, mean / float(np.mean(batches)))
    else:
        low = high = Overhead()
    return _with_prompt(low, prompt), _with_prompt(high, prompt)


def _with_prompt(overhead: Overhead, prompt: Sequence[StepCost]) -> Overhead:
    """Give what the steps with prompts leave beyond the decode overhead to their tokens."""
    tokens = sum(c.step.prefill_tokens for c in prompt)
    if not tokens:
        return overhead
    explained = (
        overhead.per_step
        + overhead.per_request * (c.step.decode_requests + c.step.prefill_requests)
        for c in prompt
    )
    left = math.fsum(_rest_s(c) for c in prompt) - math.fsum(explained)
    return dataclasses.replace(overhead, per_token=max(0.0, left / tokens))


def _rest_s(cost: StepCost) -> float:
    """Seconds of a step outside its floor."""
    return cost.time_s - cost.excess_s - sum((cost.floor or {}).values())


def _config(capture: Capture, cost: CostModel) -> SchedulerConfig | None:
    subject = capture.subject
    totals = [s.kv_total_bytes for s in capture.steps if s.kv_total_bytes]
    budget = max(totals, default=subject.kv_budget_bytes)
    if subject.static_batching:
        budget = budget or _whole_load_bytes(capture, cost)
    if subject.max_num_seqs is None or subject.max_num_batched_tokens is None:
        return None
    tokens = stated_tokens(capture) or (budget or 0) / kv_bytes_on_rank(cost)
    if not tokens:
        return None
    block = subject.block_size or _BLOCK
    return SchedulerConfig(
        max_num_seqs=subject.max_num_seqs,
        max_num_batched_tokens=subject.max_num_batched_tokens,
        num_blocks=max(1, int(tokens // block)),
        block_size=block,
        chunked_prefill=subject.chunked_prefill is not False,
        sliding_window=cost.spec.sliding_window,
        static=bool(subject.static_batching),
    )


def _whole_load_bytes(capture: Capture, cost: CostModel) -> int:
    """Return the KV bytes of all requests at once: without a pool nothing else bounds them."""
    tokens = sum(r.input_tokens + r.output_tokens + _BLOCK for r in capture.requests)
    return tokens * kv_bytes_on_rank(cost)


def _load(capture: Capture) -> Load:
    origin = min(r.arrival_ns for r in capture.requests)
    rows = [
        ((r.arrival_ns - origin) * 1e-9, r.input_tokens, r.output_tokens)
        for r in sorted(capture.requests, key=lambda r: (r.arrival_ns, r.id))
        if r.output_tokens > 0
    ]
    while len(rows) > 1 and steps_needed(rows, capture.subject.max_num_seqs or 1) > _MAX_STEPS:
        rows = rows[: len(rows) // 2]
    return Load(tuple(rows), capture.subject.concurrency)


def _most_in_flight(capture: Capture) -> int:
    """Count the requests in the system at its fullest; one without an end stays to the last."""
    changes = [(r.arrival_ns, 1) for r in capture.requests]
    changes += [(r.end_ns, -1) for r in capture.requests if r.end_ns is not None]
    return max(itertools.accumulate(change for _, change in sorted(changes)))


def build_replay(
    capture: Capture, costs: Sequence[StepCost], cost: CostModel | None, tokens_per_s: float | None
) -> Replay | None:
    """Set the simulator up from a run; None where requests, limits or the budget are not known."""
    if cost is None or not capture.requests or not tokens_per_s:
        return None
    config = _config(capture, cost)
    if config is None or not costs or any(c.floor is None for c in costs):
        return None
    load = _load(capture)
    if not load.requests:
        return None
    low, high = _fit_overhead(costs)
    most, seen = _most_in_flight(capture), len(capture.requests)
    ended = sum(r.end_ns is not None and r.output_tokens > 0 for r in capture.requests)
    return Replay(load, config, cost, low, high, tokens_per_s, most, seen, ended, drift(capture))


def _next_limit(result: Simulated, t: Thresholds) -> str | None:
    if result.queued_share >= t.queue_wait_share and result.blocked:
        return LIMIT_CLASS[max(sorted(result.blocked), key=result.blocked.__getitem__)]
    part = max(sorted(result.parts), key=result.parts.__getitem__, default=None)
    # As for a measured step: a part below this share of the time limits nothing.
    if part is None or result.parts[part] < t.limit_share * result.duration_s:
        return None
    return part


def try_config(replay: Replay, config: SchedulerConfig, t: Thresholds) -> WhatIf | None:
    """Simulate the run as it was and under other limits; the ratio moves the measured rate.

    None for the limits that it had: nothing was lifted. None too where fewer requests ended than
    can be in flight, as of a run that was cut at once: how long they are is not known, and those
    that came cannot fill what is lifted.
    The error is the largest of how far the simulated run is from the measured one, LEAST_ERROR with
    half the spread between the two overhead models, and how far the machine's probes moved.
    """
    if config == replay.config or replay.ended < _flight(replay):
        return None
    try:
        pairs = [
            (
                simulate(replay.load, replay.config, replay.cost, overhead),
                simulate(replay.load, config, replay.cost, overhead),
            )
            for overhead in (replay.low, replay.high)
        ]
    except ValueError:
        return None
    ratios = [after.output_tokens_per_s / before.output_tokens_per_s for before, after in pairs]
    before = replay.measured_tokens_per_s
    misses = [abs(b.output_tokens_per_s / before - 1.0) for b, _ in pairs]
    ratio = statistics.fmean(ratios)
    spread = (max(ratios) - min(ratios)) / 2 / ratio
    error = max(LEAST_ERROR + spread, replay.drift, *misses)
    gain = Gain("output_tokens_per_s", "tokens/s", before, before * ratio, error)
    return WhatIf(gain, _next_limit(pairs[0][1], t))


def lift(replay: Replay, limit: str) -> SchedulerConfig:
    """Return the limits with one lifted: as far as the load can use it."""
    config = replay.config
    if limit == "seqs":
        return dataclasses.replace(config, max_num_seqs=max(config.max_num_seqs, _flight(replay)))
    if limit == "batch":  # batch continuously; a prompt that filled a step may be split
        return dataclasses.replace(config, static=False, chunked_prefill=True)
    if limit == "kv":
        longest = max(i + o for _, i, o in replay.load.requests)
        most = config.most_blocks(longest) * min(_flight(replay), config.max_num_seqs)
        return dataclasses.replace(config, num_blocks=max(config.num_blocks, most))
    return dataclasses.replace(config, max_num_batched_tokens=4 * config.max_num_batched_tokens)


def _flight(replay: Replay) -> int:
    """Return how many requests can be in the system at once: more limit than that is of no use."""
    most = replay.load.concurrency or replay.most_in_flight
    return min(most, replay.seen)
