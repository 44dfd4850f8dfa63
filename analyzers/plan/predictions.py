"""Predicted latency and throughput: the engine's scheduler run on the cost model."""

from __future__ import annotations

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.plan.memory import STEP_TOKENS, scheduler_config
from stallscope.analyzers.plan.options import PlanOptions
from stallscope.analyzers.plan.result import FLOOR_ERROR, MemoryMap, Prediction
from stallscope.analyzers.whatif.simulate import Load, Overhead, Simulated, simulate

_QUEUE_OF = 2  # clients simulated for each request that fits: more only wait longer
_MOST_REQUESTS = 2048  # simulated in all
_WAVES = 4  # each client's requests in the simulated closed loop


def simulated(options: PlanOptions, memory: MemoryMap, cost: CostModel) -> Simulated | None:
    """Run the closed loop on the engine's scheduler; None where not one request fits."""
    if memory.max_concurrency == 0:
        return None
    tokens = options.input_tokens + options.output_tokens
    each = scheduler_config(options, step_tokens=1).most_blocks(tokens)
    pushing = scheduler_config(options, step_tokens=STEP_TOKENS).most_blocks(tokens) - each
    fits = options.concurrency if memory.max_concurrency is None else memory.max_concurrency
    config = scheduler_config(options, num_blocks=each * max(1, fits) + pushing)
    clients = min(options.concurrency, max(_QUEUE_OF * fits, 1))
    waves = 1 if clients == 1 else max(1, min(_WAVES, _MOST_REQUESTS // clients))
    request = (0.0, options.input_tokens, options.output_tokens)
    load = Load((request,) * (waves * clients), clients)
    return _with_queue(simulate(load, config, cost, Overhead()), options.concurrency - clients)


def _with_queue(result: Simulated, more_clients: int) -> Simulated:
    """Let more clients wait behind a full engine: each adds 1 / throughput to TTFT (Little)."""
    per_request_s = result.duration_s / len(result.ttft_s)
    result.ttft_s = [ttft + more_clients * per_request_s for ttft in result.ttft_s]
    return result


def _time(seconds: float) -> Prediction:
    """A floor: the error lies on one side."""
    return Prediction(seconds, "s", FLOOR_ERROR, worst=seconds / (1 - FLOOR_ERROR))


def predictions(result: Simulated | None) -> dict[str, Prediction | None]:
    if result is None:
        return {"ttft_s": None, "tpot_s": None, "throughput_tokens_per_s": None}
    ttft = sum(result.ttft_s) / len(result.ttft_s)
    tpot = sum(result.tpot_s) / len(result.tpot_s) if result.tpot_s else None
    rate = result.output_tokens_per_s
    return {
        "ttft_s": _time(ttft),
        "tpot_s": _time(tpot) if tpot is not None else None,
        "throughput_tokens_per_s": Prediction(
            rate, "tokens/s", FLOOR_ERROR, worst=rate * (1 - FLOOR_ERROR)
        ),
    }
