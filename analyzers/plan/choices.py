"""Several dtypes of weights and cache side by side, and what the gain of each comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.likely import likely_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.plan.memory import memory_map
from stallscope.analyzers.plan.options import PlanOptions, subject_of
from stallscope.analyzers.plan.predictions import closed_loop, simulated
from stallscope.analyzers.plan.result import Attribution, Choice, MemoryMap
from stallscope.analyzers.whatif.simulate import Simulated
from stallscope.profiler.capture import Capture


@dataclass(frozen=True, slots=True)
class _Priced:
    options: PlanOptions
    cost: CostModel
    memory: MemoryMap
    slots: int  # whole requests at once; 0 where not one fits
    result: Simulated | None  # as the plan of this choice alone shows it

    @property
    def running(self) -> int:
        """How many ran at once."""
        return 0 if self.result is None else max(1, round(self.result.mean_running))


def compare_choices(
    options: PlanOptions, pairs: Sequence[tuple[str | None, str | None]]
) -> tuple[Choice, ...]:
    """Compare pairs of weights' and cache's dtypes under one load; () where one has no price.

    Each is served by the schedule that a plan of it alone shows.
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
    memory = memory_map(options, subject_of(options))
    most = memory.max_concurrency
    slots = options.concurrency if most is None else most
    return _Priced(options, cost, memory, slots, simulated(options, memory, *likely_model(cost)))


def _choice(one: _Priced, first: _Priced) -> Choice:
    subject, memory, result = subject_of(one.options), one.memory, one.result
    return Choice(
        dtype=subject.dtype or "",
        kv_dtype=subject.kv_dtype or "",
        weights_bytes=memory.weights_bytes,
        kv_bytes_per_token=memory.kv_bytes_per_token,
        max_concurrency=memory.max_concurrency,
        running=one.running,
        tpot_s=_mean(result.tpot_s) if result is not None else None,
        wait_s=result.waited_per_request_s if result is not None else None,
        throughput_tokens_per_s=result.output_tokens_per_s if result is not None else None,
        gain=_gain(one, first) if one is not first else None,
    )


def _gain(one: _Priced, first: _Priced) -> Attribution | None:
    """Go from the first choice to another one by one change at a time."""
    if one.result is None or first.result is None:
        return None
    start, end = first.result.output_tokens_per_s, one.result.output_tokens_per_s
    same_room = _rate(one, first.slots, one.options.concurrency)
    batch = 0.0
    if one.running != first.running:
        batch = _rate(one, one.running, one.running) - _rate(one, first.running, first.running)
    return Attribution(end - start, batch, same_room - start, end - same_room - batch)


def _rate(one: _Priced, slots: int, clients: int) -> float:
    model, overhead = likely_model(one.cost)
    result = closed_loop(one.options, model, overhead, slots=slots, clients=clients)
    return result.output_tokens_per_s


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
