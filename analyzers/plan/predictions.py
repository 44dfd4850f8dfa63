"""Predicted latency and throughput: the engine's scheduler run on the cost model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stallscope.analyzers.cost.expected_error import expected_error
from stallscope.analyzers.cost.likely import likely_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.plan.memory import STEP_TOKENS, scheduler_config
from stallscope.analyzers.plan.options import PlanOptions, subject_of
from stallscope.analyzers.plan.result import FLOOR_ERROR, ErrorFrom, MemoryMap, Prediction
from stallscope.analyzers.whatif.simulate import Load, Overhead, Simulated, Watch, simulate
from stallscope.profiler.spec import Calibration, Subject

_QUEUE_OF = 2  # clients simulated for each request that fits, at least: more only wait longer
_MOST_CLIENTS = 128  # simulated one by one
_MOST_REQUESTS = 2048  # simulated in all
_MOST_ERROR = 0.95  # a calibration may have missed by more; how slow is then not bounded at all
LEAST_ERROR = 0.15  # of a calibrated prediction: other processes and hours differ by as much
_WATCHED_WAVES = 2  # the second one keeps the queue up until the first is served
_WAVES = 4  # each client's requests in the simulated closed loop


def closed_loop(
    options: PlanOptions,
    cost: CostModel,
    overhead: Overhead,
    *,
    slots: int,
    clients: int,
    watch: Watch | None = None,
) -> Simulated:
    """Run a closed loop of `clients` on an engine with room for `slots` whole requests at once.

    As engines do, it lets more in while requests are short, and preempts later. Of clients far
    beyond the slots only some are run: see _with_queue. Of very many that are, each simulated one
    stands for several. Where it is watched all clients are run, for half as long.
    """
    tokens = options.input_tokens + options.output_tokens
    run = min(clients, _most_let_in(options, slots)) if watch is None else clients
    times = -(-run // _MOST_CLIENTS)
    simulated_clients = round(run / times)
    step_tokens = max(1, max(STEP_TOKENS, run) // times)  # no engine takes fewer than requests
    each = scheduler_config(options, step_tokens=1).most_blocks(tokens)
    pushing = scheduler_config(options, step_tokens=step_tokens).most_blocks(tokens) - each
    blocks = each * max(1, slots // times) + pushing
    config = scheduler_config(options, num_blocks=blocks, step_tokens=step_tokens)
    most_waves = _WAVES if watch is None else _WATCHED_WAVES
    waves = 1 if run == 1 else max(1, min(most_waves, _MOST_REQUESTS // simulated_clients))
    request = (0.0, options.input_tokens, options.output_tokens)
    load = Load((request,) * (waves * simulated_clients), simulated_clients, times)
    config = replace(config, max_num_seqs=simulated_clients)
    return _with_queue(simulate(load, config, cost, overhead, watch), clients - run)


def _most_let_in(options: PlanOptions, slots: int) -> int:
    """Bound how many requests an engine lets in at once: as many prompts as fit, and a queue."""
    config = scheduler_config(options, step_tokens=1)
    whole = config.most_blocks(options.input_tokens + options.output_tokens)
    prompts = slots * whole // config.most_blocks(options.input_tokens)
    return max(prompts + slots, _QUEUE_OF * slots, 1)


def simulated(
    options: PlanOptions,
    memory: MemoryMap,
    cost: CostModel,
    overhead: Overhead,
    watch: Watch | None = None,
) -> Simulated | None:
    """Run the plan's load; None where not one request fits."""
    if memory.max_concurrency == 0:
        return None
    fits = options.concurrency if memory.max_concurrency is None else memory.max_concurrency
    slots, clients = max(1, fits), options.concurrency
    return closed_loop(options, cost, overhead, slots=slots, clients=clients, watch=watch)


def _with_queue(result: Simulated, more_clients: int) -> Simulated:
    """Let more clients wait behind a full engine: each adds 1 / throughput to TTFT (Little)."""
    wait_s = more_clients * result.duration_s / (result.times * len(result.ttft_s))
    result.ttft_s = [ttft + wait_s for ttft in result.ttft_s]
    result.waited_s += more_clients * result.duration_s
    result.in_system_s += more_clients * result.duration_s
    return result


def predictions(
    options: PlanOptions, memory: MemoryMap, cost: CostModel | None
) -> dict[str, Prediction | None]:
    """Predict TTFT, TPOT and throughput, at best and, on GPUs of the table, as expected."""
    floors = likely = None
    if cost is not None:
        floors = simulated(options, memory, cost, Overhead())
        model, overhead = likely_model(cost)
        likely = simulated(options, memory, model, overhead) if model is not cost else None
    best, expected = _figures(floors), _figures(likely)
    error = _error(subject_of(options), cost.machine.calibration if cost is not None else None)
    return {
        name: None if value is None else _prediction(name, value, expected[name], error)
        for name, value in best.items()
    }


@dataclass(frozen=True, slots=True)
class _Error:
    """What an expectation may be off by, and what that rests on."""

    share: float
    rests_on: ErrorFrom


def _error(subject: Subject, fitted: Calibration | None) -> _Error:
    """Return an expectation's error; a miss that nothing tested promises no more than none.

    Without a calibration a GPU of the table has the error that public runs showed, a machine that
    was probed only that of its floor.
    """
    if fitted is not None and fitted.is_tested:
        return _Error(max(fitted.error, LEAST_ERROR), "left out")
    own = 0.0 if fitted is None else fitted.error
    if subject.device is not None and subject.device.kind == "achievable":
        return _Error(max(FLOOR_ERROR, own), "untested")
    return _Error(max(expected_error(subject), own), "public runs")


def _figures(result: Simulated | None) -> dict[str, float | None]:
    if result is None:
        return dict.fromkeys(("ttft_s", "tpot_s", "throughput_tokens_per_s"))
    return {
        "ttft_s": sum(result.ttft_s) / len(result.ttft_s),
        "tpot_s": sum(result.tpot_s) / len(result.tpot_s) if result.tpot_s else None,
        "throughput_tokens_per_s": result.output_tokens_per_s,
    }


def _prediction(name: str, value: float, expected: float | None, error: _Error) -> Prediction:
    """A floor's error lies on one side: times grow, rates fall, by what is expected or more.

    Where measured steps were faster than the floor, they are the best that is known.
    """
    is_rate = name == "throughput_tokens_per_s"
    slower = 1 / (1 - FLOOR_ERROR)
    if expected is not None:
        value = max(value, expected) if is_rate else min(value, expected)
        ratio = value / expected if is_rate else expected / value
        slower = max(slower, ratio / (1 - min(error.share, _MOST_ERROR)))
    return Prediction(
        value,
        "tokens/s" if is_rate else "s",
        1 - 1 / slower,
        worst=value / slower if is_rate else value * slower,
        expected=expected,
        expected_error=None if expected is None else error.share,
        expected_error_from=None if expected is None else error.rests_on,
    )
