"""What to read with care in a plan, and what it cannot tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from stallscope.analyzers.cost.learnt_words import how_far_off, learnt_from
from stallscope.analyzers.cost.likely import likely_model
from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.analyzers.plan.memory import memory_map
from stallscope.analyzers.plan.options import PlanOptions, drafting, subject_of
from stallscope.analyzers.plan.result import FLOOR_ERROR, MemoryMap, Prediction
from stallscope.analyzers.plan.steps import phase_shapes
from stallscope.profiler.evidence import NotObservable

MOST_JUDGED = 128  # requests at once whose predicted run is judged as a recorded one
_RAN_FASTER = (
    "The runs that it was calibrated on were faster than the floor of the machine as probed: at "
    "best is what they reached. Probe again while nothing else runs."
)
_AT_PEAK = "every operator runs at the device's peak"
_PRODUCTS = (
    "every product takes what was measured of products like it, whether its bytes and FLOPs "
    "explain that or not, and all else runs at the machine's peak"
)
_NO_HOST = "with nothing for launches or the host"
_NO_LINK = "Times of communication between the devices"
_LINK_HOW = "Give link_bytes_per_s, one direction, in the --gpu-file"


def _knows_link(options: PlanOptions) -> bool:
    """Tell whether communication is priced, or there is none."""
    device = options.device
    return options.num_devices == 1 or device is None or bool(device.link_bytes_per_s)


def _link_reason(options: PlanOptions) -> str:
    name = options.device.name if options.device is not None else "the device"
    return f"the link between several {name} is not known"


def plan_notes(
    options: PlanOptions,
    memory: MemoryMap,
    cost: CostModel | None,
    predicted: Mapping[str, Prediction | None],
) -> tuple[str, ...]:
    """Say what limits a plan's worth, in sentences."""
    notes = list(options.model.warnings)
    longest = options.input_tokens + options.output_tokens
    if longest > options.model.max_position:
        notes.append(f"{longest:,} tokens are beyond the model's {options.model.max_position:,}.")
    beyond = [n for n in options.kv_lengths if n > options.model.max_position]
    if beyond:
        lengths = ", ".join(f"{n:,}" for n in beyond)
        notes.append(
            f"KV sizes at {lengths} tokens are beyond the model's {options.model.max_position:,}."
        )
    window = options.model.sliding_window
    if window is not None and max(longest, *options.kv_lengths) > window:
        notes.append(
            f"A request's KV cache stops growing at {window:,} tokens, its sliding window; a long "
            "prompt takes more for as long as one step of it lasts."
        )
    notes.extend(_drafting(options))
    if cost is not None and not _knows_link(options):
        notes.append(f"{_NO_LINK} are left out: {_link_reason(options)}. {_LINK_HOW}.")
    if memory.max_concurrency == 0:
        notes.append(_where_it_fits(options))
    elif memory.max_concurrency is not None and memory.max_concurrency < options.concurrency:
        fits, wanted = f"{memory.max_concurrency:,}", f"{options.concurrency:,}"
        notes.append(
            f"Only {fits} of {wanted} requests fit at full length: the others queue or are "
            "preempted (capacity)."
        )
    if cost is not None:
        notes.append(_calibrated(cost.machine))
        if _ran_faster(options, cost):
            notes.append(_RAN_FASTER)
        notes.append(_at_best(predicted, cost.machine))
    return tuple(notes)


def _drafting(options: PlanOptions) -> Iterator[str]:
    """Say what of the figures is of what drafts, or that the model's draft layers are in none."""
    drafts, copies = drafting(options)
    own = options.model.draft_layers
    if drafts is not None and drafts is options.draft:
        yield (
            f"The draft model {drafts.name} lies beside the model: its weights are in the memory "
            "below, and its own KV cache in each request's."
        )
    elif drafts is not None:
        what = "layer drafts" if copies == 1 else f"{copies} layers draft"
        yield (
            f"The model's own {what}: the weights are in the memory below, the KV cache in each "
            "request's; embedding and head are the model's."
        )
    elif own:
        layers, it = ("a layer", "it") if own == 1 else (f"{own} layers", "them")
        yield (
            f"{options.model.name} has {layers} to draft tokens, in no figure here: engines load "
            f"{it} only to speculate (--speculate N)."
        )


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
    return (memory_map(options, subject_of(options)).max_concurrency or 0) > 0


def unpredicted(
    options: PlanOptions, memory: MemoryMap, cost: CostModel | None
) -> tuple[NotObservable, ...]:
    """Say which predictions a priced plan cannot make."""
    if cost is None:
        return ()
    if not _knows_link(options):
        missing = NotObservable(_NO_LINK, _link_reason(options), _LINK_HOW)
        return (missing, *_unpredicted_latency(options, memory))
    return (*_unpredicted_latency(options, memory), *_unjudged(options))


def _unjudged(options: PlanOptions) -> tuple[NotObservable, ...]:
    if options.concurrency <= MOST_JUDGED:
        return ()
    reason = f"more than {MOST_JUDGED} requests at once are simulated in groups"
    how = f"plan --concurrency {MOST_JUDGED} or fewer; what binds the phases is told at any number"
    return (NotObservable("the limit under this load", reason, how),)


def _unpredicted_latency(options: PlanOptions, memory: MemoryMap) -> tuple[NotObservable, ...]:
    if memory.max_concurrency == 0:
        reason = "not one request fits beside the weights and activations"
        how = "plan more devices (--gpus), smaller weights (--dtype) or shorter requests"
        return (NotObservable("TTFT, TPOT and throughput", reason, how),)
    if options.output_tokens == 1:
        reason = "a single output token has no time between tokens"
        return (NotObservable("TPOT", reason, "plan --output-tokens 2 or more"),)
    return ()


def _at_best(predicted: Mapping[str, Prediction | None], machine: Machine) -> str:
    """Say what a floor leaves out, and how far above it reality may be or is expected."""
    floor = f"At best {_PRODUCTS if machine.linear_times else _AT_PEAK}, {_NO_HOST}."
    usual = 1 / (1 - FLOOR_ERROR)
    ratios = [
        max(p.expected / p.value, p.value / p.expected)
        for p in predicted.values()
        if p is not None and p.expected and p.value
    ]
    if max(ratios, default=0.0) > usual:
        return f"{floor} With them {max(ratios):,.0f} times as long is expected here."
    return f"{floor} Real decode has taken up to {usual:.1f} times as long."


def _ran_faster(options: PlanOptions, cost: CostModel) -> bool:
    """Tell whether measured steps were faster than the floor that a probe of the machine gives."""
    if cost.machine.calibration is None:
        return False
    model, overhead = likely_model(cost)
    return any(
        model.step_time(shape).floor + overhead.per_step < cost.step_time(shape).floor
        for _, _, shape in phase_shapes(options)
    )


def _calibrated(machine: Machine) -> str:
    """Say what the expectation rests on."""
    fitted = machine.calibration
    if fitted is None:
        how = "record runs and give them to --calibrate"
        return f"Not calibrated on this engine: {how}."
    rests_on = f"{learnt_from(fitted)} ({fitted.engine})"
    return f"Calibrated on {fitted.at} by {rests_on}, {how_far_off(fitted)}."
