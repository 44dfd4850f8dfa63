"""A model on a device without a run: memory map, KV growth, phases, and predicted speed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.analyzers.cost.arithmetic import (
    ffn_share,
    kv_bytes_per_token,
    num_parameters,
    weight_bytes,
)
from stallscope.analyzers.cost.calibration import NoCostModel, build_cost_model
from stallscope.analyzers.cost.operator_table import operator_rows, unpriced_rows
from stallscope.analyzers.cost.operators import (
    StepShape,
    activation_bytes_per_element,
    decode_shape,
    prefill_shape,
    step_operators,
)
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.kv_life import DEFAULT_LENGTHS, kv_rows
from stallscope.analyzers.result import BudgetPart, KvRow, OperatorRow
from stallscope.analyzers.schedule import SchedulerConfig
from stallscope.analyzers.whatif.simulate import Load, Overhead, Simulated, simulate
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import NotObservable
from stallscope.profiler.spec import DeviceSpec, ModelSpec, Subject

# A roofline is a floor: against real CPU decode it missed by 65-73 % (mean absolute error over
# three model sizes), always on the fast side. See docs/metrics.md.
FLOOR_ERROR = 0.70
# What engines take of a GPU's memory by default (vLLM's gpu_memory_utilization).
MEMORY_FRACTION = 0.90
_STEP_TOKENS = 2048  # vLLM's usual max_num_batched_tokens; sizes activations
_BLOCK = 16
_QUEUE_OF = 2  # clients simulated for each request that fits: more only wait longer
_MOST_REQUESTS = 2048  # simulated in all
_WAVES = 4  # each client's requests in the simulated closed loop


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What to plan; `dtype` None takes the checkpoint's own, else fp16."""

    model: ModelSpec
    device: DeviceSpec | None = None
    num_devices: int = 1
    dtype: str | None = None
    kv_dtype: str | None = None
    input_tokens: int = 512
    output_tokens: int = 256
    concurrency: int = 1
    kv_lengths: tuple[int, ...] = DEFAULT_LENGTHS


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """Bytes on each device. `kv_bytes` holds all concurrent requests at full length.

    `usable_bytes` is MEMORY_FRACTION of the device's memory; `free_bytes` what the rest leaves of
    it, negative where the plan does not fit; both and `max_concurrency` are None without a device.
    """

    weights_bytes: int
    kv_bytes_per_token: int
    kv_bytes: int
    activation_bytes: int
    usable_bytes: int | None
    free_bytes: int | None
    max_concurrency: int | None


@dataclass(frozen=True, slots=True)
class PhasePlan:
    """One step of a phase: FLOPs, bytes, intensity; its floor and what binds, with a device.

    `share` in `budget` is of the floor.
    """

    phase: str
    what: str
    flops: float
    bytes: float
    intensity: float
    time_s: float | None
    bound: str | None
    budget: tuple[BudgetPart, ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted value; `error` is relative to the true one, `worst` the value that allows."""

    value: float
    unit: str
    error: float
    worst: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything `plan` shows."""

    subject: Subject
    parameters: int
    ffn_share: float
    memory: MemoryMap
    kv_table: tuple[KvRow, ...]
    ridge: float | None
    phases: tuple[PhasePlan, ...]
    operators: tuple[OperatorRow, ...]
    ttft_s: Prediction | None
    tpot_s: Prediction | None
    throughput_tokens_per_s: Prediction | None
    notes: tuple[str, ...]
    not_observable: tuple[NotObservable, ...]


def _subject(options: PlanOptions) -> Subject:
    dtype = options.dtype or options.model.dtype or "fp16"
    kv_dtype = options.kv_dtype or (dtype if dtype in ("fp32", "bf16", "fp16") else "fp16")
    lengths = f"{options.input_tokens} in, {options.output_tokens} out"
    return Subject(
        model=options.model,
        device=options.device,
        num_devices=options.num_devices,
        dtype=dtype,
        kv_dtype=kv_dtype,
        engine="plan",
        workload=f"{lengths}, {options.concurrency} at once",
        concurrency=options.concurrency,
    )


def _activation_bytes(spec: ModelSpec, dtype: str, rows: int, requests: int) -> int:
    """Estimate the peak of a step: residual, norm, q/k/v or both MLP halves, and fp32 logits."""
    width = 4 * spec.hidden_size + 2 * spec.intermediate_size
    element = activation_bytes_per_element(dtype)
    return int(rows * width * element + requests * spec.vocab_size * 4)


def _scheduler(options: PlanOptions, *, num_blocks: int = 1) -> SchedulerConfig:
    return SchedulerConfig(
        max_num_seqs=options.concurrency,
        max_num_batched_tokens=_STEP_TOKENS,
        num_blocks=num_blocks,
        block_size=_BLOCK,
        sliding_window=options.model.sliding_window,
    )


def _blocks_each(options: PlanOptions, cached: int, *, step_tokens: int) -> int:
    config = dataclasses.replace(_scheduler(options), max_num_batched_tokens=step_tokens)
    return config.most_blocks(cached)


def _memory(options: PlanOptions, subject: Subject) -> MemoryMap:
    spec, dtype, kv_dtype = options.model, subject.dtype or "", subject.kv_dtype or ""
    ranks = options.num_devices
    per_token = kv_bytes_per_token(spec, kv_dtype, tensor_parallel=ranks)
    tokens = options.input_tokens + options.output_tokens - 1
    block = _BLOCK * per_token
    per_request = _blocks_each(options, tokens, step_tokens=1) * block
    # A step's new tokens lie in the cache before what they push out of a sliding window is free.
    pushing = _blocks_each(options, tokens, step_tokens=_STEP_TOKENS) * block - per_request
    weights = int(weight_bytes(spec, dtype) / ranks)
    running = options.concurrency
    usable = free = most = None
    if options.device is not None and options.device.memory_bytes is not None:
        usable = int(MEMORY_FRACTION * options.device.memory_bytes)
        rows = _activation_bytes(spec, dtype, _STEP_TOKENS, 0)
        # A request that runs takes its KV cache and its row of logits.
        each = per_request + _activation_bytes(spec, dtype, 0, 1)
        most = max(0, (usable - weights - rows - pushing) // each)
        running = min(running, max(1, most))
    activations = _activation_bytes(spec, dtype, _STEP_TOKENS, running)
    if usable is not None:
        free = usable - weights - activations - pushing - options.concurrency * per_request
    kv_bytes = options.concurrency * per_request + pushing
    return MemoryMap(weights, per_token, kv_bytes, activations, usable, free, most)


def _budget(cost: CostModel, shape: StepShape) -> tuple[BudgetPart, ...]:
    time = cost.step_time(shape)
    source = f"roofline against the {cost.machine.kind} peak"
    parts = {
        "weights": time.weights,
        "kv": time.kv,
        "compute": time.compute,
        "communication": time.communication,
    }
    return tuple(
        BudgetPart(name, seconds, seconds / time.floor, "estimated", source)
        for name, seconds in parts.items()
    )


def _bound(budget: Sequence[BudgetPart]) -> str:
    shares = {p.part: p.share for p in budget}
    sums = {
        "bandwidth": shares["weights"] + shares["kv"],
        "compute": shares["compute"],
        "interconnect": shares["communication"],
    }
    return max(sums, key=sums.__getitem__)


def _phase(
    phase: str, what: str, shape: StepShape, subject: Subject, cost: CostModel | None
) -> PhasePlan:
    spec, dtype, kv_dtype = subject.model, subject.dtype or "", subject.kv_dtype or ""
    if spec is None:
        raise ValueError("a plan needs a model")
    operators = step_operators(spec, shape, dtype=dtype, kv_dtype=kv_dtype)
    flops = sum(o.instances * o.flops for o in operators)
    moved = sum(o.instances * o.bytes for o in operators)
    budget = _budget(cost, shape) if cost is not None else ()
    return PhasePlan(
        phase=phase,
        what=what,
        flops=flops,
        bytes=moved,
        intensity=flops / moved,
        time_s=cost.step_time(shape).floor if cost is not None else None,
        bound=_bound(budget) if budget else None,
        budget=budget,
    )


def _simulate(options: PlanOptions, memory: MemoryMap, cost: CostModel) -> Simulated | None:
    """Run the closed loop on the engine's scheduler; None where not one request fits."""
    if memory.max_concurrency == 0:
        return None
    tokens = options.input_tokens + options.output_tokens
    each = _blocks_each(options, tokens, step_tokens=1)
    pushing = _blocks_each(options, tokens, step_tokens=_STEP_TOKENS) - each
    fits = options.concurrency if memory.max_concurrency is None else memory.max_concurrency
    config = _scheduler(options, num_blocks=each * max(1, fits) + pushing)
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


def _predictions(result: Simulated | None) -> dict[str, Prediction | None]:
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


def _notes(options: PlanOptions, memory: MemoryMap, cost: CostModel | None) -> tuple[str, ...]:
    notes = list(options.model.warnings)
    longest = options.input_tokens + options.output_tokens
    if longest > options.model.max_position:
        notes.append(f"{longest} tokens are beyond the model's {options.model.max_position}.")
    beyond = [n for n in options.kv_lengths if n > options.model.max_position]
    if beyond:
        lengths = ", ".join(str(n) for n in beyond)
        notes.append(
            f"KV sizes at {lengths} tokens are beyond the model's {options.model.max_position}."
        )
    window = options.model.sliding_window
    if window is not None and max(longest, *options.kv_lengths) > window:
        notes.append(
            f"A request's KV cache stops growing at {window} tokens, its sliding window; a long "
            "prompt takes more for as long as one step of it lasts."
        )
    if memory.max_concurrency == 0:
        notes.append(_where_it_fits(options))
    elif memory.max_concurrency is not None and memory.max_concurrency < options.concurrency:
        notes.append(
            f"Only {memory.max_concurrency} of {options.concurrency} requests fit at full length: "
            "the others queue or are preempted (capacity)."
        )
    if cost is not None:
        notes.append(
            "Times are floors: every operator at the device's peak, nothing for launches or the "
            f"host. Real decode has taken up to {1 / (1 - FLOOR_ERROR):.1f} times as long."
        )
    return tuple(notes)


def _where_it_fits(options: PlanOptions) -> str:
    """Say that nothing runs, and which number of the same devices, or which dtype, would do."""
    more = (n for n in range(options.num_devices + 1, 65) if options.model.num_heads % n == 0)
    ways = [
        f"{n} devices (--gpus {n})"
        for n in more
        if _fits(dataclasses.replace(options, num_devices=n))
    ][:1]
    ways += [
        f"weights in {dtype} (--dtype {dtype})"
        for dtype in ("int8", "int4")
        if dtype != options.dtype and _fits(dataclasses.replace(options, dtype=dtype))
    ][:1]
    fits = f"; one request fits with {' or '.join(ways)}" if ways else ""
    return f"Nothing runs: not one request fits beside the weights and activations{fits}."


def _fits(options: PlanOptions) -> bool:
    return (_memory(options, _subject(options)).max_concurrency or 0) > 0


def _unpredicted(
    options: PlanOptions, memory: MemoryMap, cost: CostModel | None
) -> tuple[NotObservable, ...]:
    """Say which predictions a priced plan cannot make."""
    if cost is None:
        return ()
    if memory.max_concurrency == 0:
        reason = "not one request fits beside the weights and activations"
        how = "plan more devices (--gpus), smaller weights (--dtype) or shorter requests"
        return (NotObservable("TTFT, TPOT and throughput", reason, how),)
    if options.output_tokens == 1:
        reason = "a single output token has no time between tokens"
        return (NotObservable("TPOT", reason, "plan --output-tokens 2 or more"),)
    return ()


def plan(options: PlanOptions) -> Plan:
    """Plan a model on a device; without a device only memory, KV and FLOP/byte counts."""
    subject = _subject(options)
    model = build_cost_model(Capture(subject=subject))
    cost = model if isinstance(model, CostModel) else None
    memory = _memory(options, subject)
    shapes = _shapes(options)
    missing = (
        (NotObservable("times and predictions", model.reason, model.how),)
        if isinstance(model, NoCostModel)
        else ()
    )
    machine = cost.machine if cost is not None else None
    predictions = _predictions(_simulate(options, memory, cost) if cost is not None else None)
    return Plan(
        subject=subject,
        parameters=num_parameters(options.model),
        ffn_share=ffn_share(options.model),
        memory=memory,
        kv_table=kv_rows(
            options.model,
            subject.kv_dtype or "",
            options.kv_lengths,
            ranks=options.num_devices,
        ),
        ridge=machine.peak_flops / machine.bytes_per_s if machine is not None else None,
        phases=tuple(_phase(p, what, s, subject, cost) for p, what, s in shapes),
        operators=tuple(row for p, _, s in shapes for row in _operators(p, s, subject, cost)),
        notes=_notes(options, memory, cost),
        not_observable=(*missing, *_unpredicted(options, memory, cost)),
        **predictions,
    )


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"


def _shapes(options: PlanOptions) -> tuple[tuple[str, str, StepShape], ...]:
    """The steps that stand for the phases: one prompt; all requests at their mean context."""
    context = options.input_tokens + (options.output_tokens + 1) // 2
    window = options.model.sliding_window
    return (
        (
            "prefill",
            f"one prompt of {options.input_tokens} tokens",
            prefill_shape(options.input_tokens, window=window),
        ),
        (
            "decode",
            f"{_requests(options.concurrency)} at {context} tokens of context",
            decode_shape(options.concurrency, context, window=window),
        ),
    )


def _operators(
    phase: str, shape: StepShape, subject: Subject, cost: CostModel | None
) -> tuple[OperatorRow, ...]:
    if cost is not None:
        return operator_rows(phase, cost, shape)
    if subject.model is None:
        return ()
    operators = step_operators(
        subject.model, shape, dtype=subject.dtype or "", kv_dtype=subject.kv_dtype or ""
    )
    return unpriced_rows(phase, operators)
