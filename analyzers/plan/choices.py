"""Several dtypes of weights and cache side by side, and what the gain of each comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.plan.memory import memory_map
from stallscope.analyzers.plan.options import PlanOptions, subject_of
from stallscope.analyzers.plan.predictions import closed_loop, likely_model
from stallscope.analyzers.plan.result import Attribution, Choice
from stallscope.analyzers.whatif.simulate import Simulated
from stallscope.profiler.capture import Capture


@dataclass(frozen=True, slots=True)
class _Priced:
    options: PlanOptions
    cost: CostModel
    running: int  # at once; 0 where not one request fits


def compare_choices(
    options: PlanOptions, pairs: Sequence[tuple[str | None, str | None]]
) -> tuple[Choice, ...]:
    """Compare pairs of weights' and cache's dtypes under one load; () where one has no price.

    Room for whole requests is reserved: else an engine that lets in more than fit, and preempts
    them later, hides part of what more room gives.
    """
    priced = [_priced(replace(options, dtype=dtype, kv_dtype=kv)) for dtype, kv in pairs]
    known = [one for one in priced if one is not None]
    if len(known) < len(priced) or not known:
        return ()
    return tuple(_choice(one, known[0]) for one in known)


def _priced(options: PlanOptions) -> _Priced | None:
    cost = build_cost_model(Capture(subject=subject_of(options)))
    if not isinstance(cost, CostModel):
        return None
    most = memory_map(options, subject_of(options)).max_concurrency
    running = options.concurrency if most is None else min(options.concurrency, most)
    return _Priced(options, cost, running)


def _choice(one: _Priced, first: _Priced) -> Choice:
    options, subject = one.options, subject_of(one.options)
    memory = memory_map(options, subject)
    result = _run(one, one.running, options.concurrency) if one.running else None
    return Choice(
        dtype=subject.dtype or "",
        kv_dtype=subject.kv_dtype or "",
        weights_bytes=memory.weights_bytes,
        kv_bytes_per_token=memory.kv_bytes_per_token,
        max_concurrency=memory.max_concurrency,
        running=one.running,
        tpot_s=_mean(result.tpot_s) if result is not None else None,
        wait_s=result.waited_s / len(result.ttft_s) if result is not None else None,
        throughput_tokens_per_s=result.output_tokens_per_s if result is not None else None,
        gain=_gain(one, first) if one is not first else None,
    )


def _gain(one: _Priced, first: _Priced) -> Attribution | None:
    """Go from the first choice to another one by one change at a time."""
    if not one.running or not first.running:
        return None
    clients, before, after = one.options.concurrency, first.running, one.running
    start = _run(first, before, clients).output_tokens_per_s
    end = _run(one, after, clients).output_tokens_per_s
    same_batch = _run(one, before, clients).output_tokens_per_s
    batch = 0.0
    if after != before:
        batch = (
            _run(one, after, after).output_tokens_per_s
            - _run(one, before, before).output_tokens_per_s
        )
    queue = end - same_batch - batch
    return Attribution(end - start, batch, same_batch - start, queue)


def _run(one: _Priced, slots: int, clients: int) -> Simulated:
    model, overhead = likely_model(one.cost)
    return closed_loop(one.options, model, overhead, slots=slots, clients=clients, is_reserved=True)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
