"""How a plan goes with more requests at once: where compute takes over, where KV runs out."""

from __future__ import annotations

from dataclasses import replace

from stallscope.analyzers.cost.likely import likely_model
from stallscope.analyzers.cost.operators import decode_shape
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.plan.options import PlanOptions
from stallscope.analyzers.plan.predictions import simulated
from stallscope.analyzers.plan.result import MemoryMap, Sweep, SweepRow
from stallscope.analyzers.plan.steps import bound_of, budget_of, mean_context

_MOST = 1 << 16  # requests; no engine runs more at once


def sweep(options: PlanOptions, cost: CostModel, memory: MemoryMap) -> Sweep:
    """Double the requests at once until KV has run out and compute binds, or 65,536 are reached."""
    turn, most = _first_compute_bound(options, cost), memory.max_concurrency
    full = None if most is None else most + 1
    if most == 0:
        return Sweep((), turn, full)
    # What compute would bind from on is of no interest where so many never run.
    reached = turn or 0 if most is None else min(turn or 0, most)
    last = min(_MOST, 2 * max(options.concurrency, most or 0, reached, 1))
    points = [1 << i for i in range(last.bit_length()) if 1 << i <= last]
    return Sweep(tuple(_row(options, cost, n, memory) for n in points), turn, full)


def _bound(options: PlanOptions, cost: CostModel, running: int) -> str:
    window = options.model.sliding_window
    return bound_of(budget_of(cost, decode_shape(running, mean_context(options), window=window)))


def _row(options: PlanOptions, cost: CostModel, clients: int, memory: MemoryMap) -> SweepRow:
    """Serve so many clients by the schedule that a plan of them alone shows."""
    model, overhead = likely_model(cost)
    result = simulated(replace(options, concurrency=clients), memory, model, overhead)
    if result is None:
        raise ValueError("a sweep needs room for one request")
    running = max(1, round(result.mean_running))
    decode = decode_shape(running, mean_context(options), window=options.model.sliding_window)
    return SweepRow(
        concurrency=clients,
        running=running,
        bound=_bound(options, cost, running),
        step_s=model.step_time(decode).floor + overhead.per_step + overhead.per_request * running,
        tpot_s=sum(result.tpot_s) / len(result.tpot_s) if result.tpot_s else None,
        throughput_tokens_per_s=result.output_tokens_per_s,
    )


def _first_compute_bound(options: PlanOptions, cost: CostModel) -> int | None:
    """Return the smallest batch whose decode step is bound by compute, memory left aside."""
    if _bound(options, cost, _MOST) != "compute":
        return None
    low, high = 0, _MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _bound(options, cost, middle) == "compute" else (middle, high)
    return high
