"""How a plan goes with more requests at once: where compute takes over, where KV runs out."""

from __future__ import annotations

from stallscope.analyzers.cost.operators import decode_shape, prefill_shape
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.plan.options import PlanOptions
from stallscope.analyzers.plan.predictions import likely_model
from stallscope.analyzers.plan.result import Sweep, SweepRow
from stallscope.analyzers.plan.steps import bound_of, budget_of, mean_context

_MOST = 1 << 16  # requests; no engine runs more at once


def sweep(options: PlanOptions, cost: CostModel, max_concurrency: int | None) -> Sweep:
    """Double the requests at once until KV has run out and compute binds, or 1,024 are reached."""
    turn = _first_compute_bound(options, cost)
    full = None if max_concurrency is None else max_concurrency + 1
    if max_concurrency == 0:
        return Sweep((), turn, full)
    last = min(1024, 2 * max(options.concurrency, max_concurrency or 0, turn or 0, 1))
    points = [1 << i for i in range(11) if 1 << i <= last]
    rows = tuple(_row(options, cost, n, max_concurrency) for n in points)
    return Sweep(rows, turn, full)


def _bound(options: PlanOptions, cost: CostModel, running: int) -> str:
    window = options.model.sliding_window
    return bound_of(budget_of(cost, decode_shape(running, mean_context(options), window=window)))


def _row(options: PlanOptions, cost: CostModel, clients: int, most: int | None) -> SweepRow:
    running = clients if most is None else min(clients, most)
    model, overhead = likely_model(cost)
    window = options.model.sliding_window
    decode = decode_shape(running, mean_context(options), window=window)
    step_s = model.step_time(decode).floor + overhead.per_step + overhead.per_request * running
    prompt = model.step_time(prefill_shape(options.input_tokens, window=window)).floor
    tpot_s = step_s + running / options.output_tokens * (prompt + overhead.per_request)
    bound = _bound(options, cost, running)
    return SweepRow(clients, running, bound, step_s, tpot_s, running / tpot_s)


def _first_compute_bound(options: PlanOptions, cost: CostModel) -> int | None:
    """Return the smallest batch whose decode step is bound by compute, memory left aside."""
    if _bound(options, cost, _MOST) != "compute":
        return None
    low, high = 0, _MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _bound(options, cost, middle) == "compute" else (middle, high)
    return high
