"""The closed list of measure names, and the measures every diagnosis reports where it can."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from stallscope.analyzers.cost.arithmetic import ffn_share, step_weight_bytes
from stallscope.analyzers.cost.kv_bytes import kv_bytes_per_token, kv_formula
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.cost.work import mbu, mfu, of_phases, work_of
from stallscope.analyzers.event_fields import number, whole_events
from stallscope.analyzers.kv_life import copied, of_all_devices
from stallscope.analyzers.padding import padding_measures
from stallscope.analyzers.phase_counters import PHASES, phase_measures
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.step.copies import MARKED_MEASURES, marked_measures
from stallscope.analyzers.step.core_measures import CORE_MEASURES
from stallscope.analyzers.step.origins import origin_of_host
from stallscope.analyzers.token_rates import RATE_MEASURES, token_rates
from stallscope.analyzers.trace_copies import COPY_MEASURES, copy_measures
from stallscope.analyzers.trace_figures import TRACE_MEASURES, trace_measures
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import BoundSide, Measure
from stallscope.profiler.model_parts import Stored
from stallscope.profiler.wording import figure

# name → (unit, meaning); docs/metrics.md lists the same names.
MEASURES: dict[str, tuple[str, str]] = {
    "queue_wait_share": ("fraction", "time spent waiting over time in the system"),
    "idle_share": ("fraction", "time with nothing in flight"),
    "in_flight": ("requests", "mean requests in the system"),
    "waiting_mean": ("requests", "mean requests waiting"),
    "first_token_wait_share": (
        "fraction",
        "of the time that requests wait, before their first token, at the most",
    ),
    "limit_kv": ("fraction", "of the time something waited, held back by KV room"),
    "limit_seqs": ("fraction", "of the time something waited, held back by max_num_seqs"),
    "limit_tokens": ("fraction", "of the time something waited, held back by the token budget"),
    "limit_prefill": (
        "fraction",
        "of the time something waited, prompts taken in at a steady rate under every cap",
    ),
    "limit_batch": ("fraction", "of the time something waited, behind a static batch"),
    "limit_stalled": ("fraction", "of the time something waited, no progress under no cap"),
    "limit_imbalance": (
        "fraction",
        "of the time something waited, at one engine while another had room",
    ),
    "limit_deferred": (
        "fraction",
        "of the time something waited, put off by the scheduler for something other than room",
    ),
    "limit_front": ("fraction", "of the time something waited, in front of the scheduler"),
    "limit_unknown": ("fraction", "of the time something waited, under no limit seen at its cap"),
    "in_flight_fullest": ("requests", "mean requests in the fullest of several engines"),
    "in_flight_mean_engine": ("requests", "mean requests in one of several engines"),
    "step_wait_share": (
        "fraction",
        "of the requests' time, waiting only for the step that ran when they came",
    ),
    "queue_wait_share_worst": ("fraction", "queue_wait_share of the fullest of several engines"),
    "standstill_share": (
        "fraction",
        "of the time with requests, in stretches in which no counter moved",
    ),
    "in_flight_offered": ("requests", "mean requests in flight that the clients offered"),
    "ttft_in_front": (
        "s",
        "time to first token by the clients less that by the server: what passed in front of it",
    ),
    "in_front_share": ("fraction", "of a request's time, in front of the server"),
    "frontend_cores": ("cores", "CPU cores that the server's own process used"),
    "rate_offered": ("requests/s", "requests a second that the load generator was asked to send"),
    "rate_sent": ("requests/s", "requests a second that it sent"),
    "requests_completed": ("count", "requests that came back to the client"),
    "requests_failed": ("count", "requests that failed, as the client saw it"),
    "decode_share_client": ("fraction", "of the requests' time, after their first token"),
    "growth_exponent": (
        "fraction",
        "ln(tokens/s ratio) over ln(ratio of running requests), at the most",
    ),
    "preemptions": ("count", "running requests put back into the queue"),
    "preemptions_inferred": (
        "count",
        "running requests put back into the queue, by the gauges: the engine's counter may lag",
    ),
    "recomputed_tokens": ("tokens", "prompt and output tokens prefilled again after preemption"),
    "recompute_share": ("fraction", "of step time, prefilling again what preemption dropped"),
    "preempted_share": ("fraction", "of the requests' time, put back into the queue"),
    "kv_used_peak": ("fraction", "highest KV pool use"),
    "kv_used_mean": ("fraction", "mean KV pool use over step time"),
    "prefills_per_token": ("count", "batches of prompts for each token of a running request"),
    "kv_full_at": ("requests", "running requests that fill the KV pool, by what they hold already"),
    "kv_full_share": ("fraction", "of the time, with a full KV pool that slows the engine"),
    "tokens_per_s_when_full": ("tokens/s", "tokens generated a second with a full KV pool"),
    "tokens_per_s_with_room": ("tokens/s", "tokens generated a second with room in the KV pool"),
    "kv_bytes_per_token": ("bytes", "KV cache per token by the formula"),
    "kv_bytes_per_token_allocated": ("bytes", "KV tensors' bytes over the tokens they hold"),
    "weights_bytes_stated": ("bytes", "weights on each device, by the engine's own line"),
    "kv_bytes_per_token_stated": ("bytes", "KV bytes per token on each device, by the engine"),
    "kv_copies_stated": ("count", "copies of a token's KV over all ranks, by the engine's figures"),
    "kv_read_bytes_per_decode_step": ("bytes", "KV read in a decode step"),
    "kv_copies": (
        "count",
        "KV entries that all devices hold for one, sharing each layer",
    ),
    "weights_of_memory": ("fraction", "weights on a device over its memory"),
    "itl_tail": ("count", "99th percentile of the gaps between tokens over the median"),
    "memory_used": ("fraction", "device memory used over total"),
    "allocation_failures": ("count", "refused allocations"),
    "kv_bytes_needed": ("bytes", "KV cache that one longest request needs, by the engine"),
    "kv_bytes_left": ("bytes", "memory that the engine had left for its KV cache"),
    "max_model_len_fitting": ("tokens", "the longest request that fits into it, by the engine"),
    "sm_throughput": ("fraction", "SM throughput over its peak"),
    "dram_throughput": ("fraction", "DRAM throughput over its peak"),
    "tensor_active": ("fraction", "tensor pipe activity"),
    "gpu_busy": ("fraction", "time in which the device worked at all"),
    "gpu_busy_busiest": ("fraction", "GPU busy of the device that was busy most"),
    "power_of_limit": ("fraction", "power drawn over the power limit"),
    "power_capped": ("fraction", "of the samples, the power cap lowered clocks"),
    "sm_clock_share": ("fraction", "mean SM clock over the highest it can be"),
    "memory_clock_share": ("fraction", "mean memory clock over the highest it can be"),
    "sm_throughput_prefill": ("fraction", "SM throughput within prefill stretches"),
    "sm_throughput_decode": ("fraction", "SM throughput within decode stretches"),
    "dram_throughput_prefill": ("fraction", "DRAM throughput within prefill stretches"),
    "dram_throughput_decode": ("fraction", "DRAM throughput within decode stretches"),
    "tensor_active_prefill": ("fraction", "tensor pipe activity within prefill stretches"),
    "tensor_active_decode": ("fraction", "tensor pipe activity within decode stretches"),
    "gpu_busy_prefill": ("fraction", "GPU busy within prefill stretches"),
    "gpu_busy_decode": ("fraction", "GPU busy within decode stretches"),
    "power_prefill": ("W", "mean power of a device within prefill stretches"),
    "power_decode": ("W", "mean power of a device within decode stretches"),
    "mfu": ("fraction", "model FLOPs over what the device could do in the time"),
    "mbu": ("fraction", "bytes that must move over what the memory could deliver in the time"),
    "mfu_prefill": ("fraction", "MFU of the prefill steps"),
    "mfu_decode": ("fraction", "MFU of the decode steps"),
    "mbu_prefill": ("fraction", "MBU of the prefill steps"),
    "mbu_decode": ("fraction", "MBU of the decode steps"),
    "mbu_decode_stream": ("fraction", "MBU of the decode steps against the memory stream probe"),
    "intensity_prefill": ("FLOP/B", "FLOPs over bytes that must move, prefill steps"),
    "intensity_decode": ("FLOP/B", "FLOPs over bytes that must move, decode steps"),
    "ridge": ("FLOP/B", "peak FLOP/s over peak bytes/s"),
    "decode_share_requests": ("fraction", "decode's share of the requests' time"),
    "decode_share_engine": ("fraction", "decode's share of step time"),
    "padding_share": ("fraction", "computed tokens that belong to no request"),
    "padding_share_prefill": ("fraction", "padding's share of the prefill steps' tokens"),
    "padding_share_decode": ("fraction", "padding's share of the decode steps' tokens"),
    "padding_time_share": ("fraction", "step time that padding takes by the cost model"),
    "weights_read_share": ("fraction", "of the memory's bandwidth, reading the weights in decode"),
    "host_per_step": ("s", "mean step time outside the forward call"),
    "weight_bytes_per_step": ("bytes", "weights read in a step"),
    "ffn_parameter_share": ("fraction", "the MLP's share of all parameters"),
    "probe_bandwidth": ("B/s", "memory stream probe"),
    "probe_flops": ("FLOP/s", "square matrix product probe"),
    **RATE_MEASURES,
    **TRACE_MEASURES,
    **COPY_MEASURES,
    **CORE_MEASURES,
    **MARKED_MEASURES,
}


_STEP_WEIGHTS = "linears of the blocks and LM head; the input embedding is not read"
_LOADED = "; the linears as small as what the engine says was loaded"


def measure(
    name: str, value: float, provenance: str, source: str, *, side: BoundSide | None = None
) -> Measure:
    """Build a measure of the closed list; KeyError for a name that is not in it."""
    unit = MEASURES[name][0]
    return Measure(name, value, unit, provenance, source, side)  # type: ignore[arg-type]


def kv_measures(
    capture: Capture, costs: Sequence[StepCost], cost: CostModel | None
) -> list[Measure]:
    """KV pool use, and bytes per token."""
    found: list[Measure] = []
    steps = [c for c in costs if c.step.kv_used_bytes is not None and c.step.kv_total_bytes]
    shares = [(c.step.kv_used_bytes or 0) / (c.step.kv_total_bytes or 1) for c in steps]
    if shares:
        time_s = math.fsum(c.time_s for c in steps) or 1.0
        mean = math.fsum(s * c.time_s for s, c in zip(shares, steps, strict=True)) / time_s
        found.append(measure("kv_used_peak", max(shares), "measured", "KV pool gauge of each step"))
        found.append(measure("kv_used_mean", mean, "measured", "KV pool gauge of each step"))
    return found + _kv_bytes(capture, costs, cost)


def _kv_bytes(capture: Capture, costs: Sequence[StepCost], cost: CostModel | None) -> list[Measure]:
    found: list[Measure] = []
    if cost is not None:
        ranks = cost.machine.ranks
        spec = replace(cost.spec, stored=Stored())  # the engine's own is a measure beside it
        per_token = ranks * kv_bytes_per_token(spec, cost.kv_dtype, tensor_parallel=ranks)
        source = kv_formula(spec) + copied(spec, ranks) + of_all_devices(ranks)
        found.append(measure("kv_bytes_per_token", per_token, "derived", source))
    pool = next((e.data for e in whole_events(capture, "kv_pool")), None)
    if pool and pool["tokens"]:
        source = "bytes of the KV pool's tensors ÷ tokens they hold"
        value = pool["bytes"] / pool["tokens"]
        found.append(measure("kv_bytes_per_token_allocated", value, "measured", source))
    elif grown := [e.data for e in whole_events(capture, "kv_alloc") if e.data.get("tokens")]:
        source = "bytes of the KV cache's tensors ÷ tokens they hold"
        value = sum(d["bytes"] for d in grown) / sum(d["tokens"] for d in grown)
        found.append(measure("kv_bytes_per_token_allocated", value, "measured", source))
    read = [e.data["bytes"] for e in whole_events(capture, "kv_read")]
    decode = of_phases(costs, "decode")
    work = work_of(decode, cost) if cost is not None else None
    name = "kv_read_bytes_per_decode_step"
    if read:
        found.append(measure(name, math.fsum(read) / len(read), "derived", "kv_read events, mean"))
    elif work is not None:
        source = "KV bytes per token × context, mean over decode steps"
        found.append(measure(name, work.kv_bytes / len(decode), "estimated", source))
    return found


def work_measures(costs: Sequence[StepCost], cost: CostModel | None) -> list[Measure]:
    """MFU, MBU and arithmetic intensity by phase, and the roof."""
    if cost is None:
        return []
    machine = cost.machine
    found = [
        measure(
            "ridge",
            machine.peak_flops / machine.bytes_per_s,
            "derived",
            f"{machine.kind} peak FLOP/s ÷ bytes/s",
        ),
        measure(
            "weight_bytes_per_step",
            step_weight_bytes(cost.spec, cost.dtype),
            "estimated",
            _STEP_WEIGHTS + _LOADED * (cost.spec.stored.weights != 1.0),
        ),
        measure("ffn_parameter_share", ffn_share(cost.spec), "derived", "counted from the config"),
    ]
    for phase in ("prefill", "decode"):
        work = work_of(of_phases(costs, phase), cost)
        if work is not None and work.time_s:
            found.append(mfu(work, cost, f"mfu_{phase}"))
            found.append(mbu(work, cost, f"mbu_{phase}"))
            source = "model FLOPs ÷ bytes that must move"
            value = work.flops / work.bytes
            found.append(measure(f"intensity_{phase}", value, "estimated", source))
    return found


def stream_measure(capture: Capture, costs: Sequence[StepCost], cost: CostModel) -> list[Measure]:
    """MBU against the memory itself, where the budget goes by the cache that holds the run."""
    device = capture.subject.device
    work = work_of(of_phases(costs, "decode"), cost)
    if device is None or device.memory_bytes_per_s == cost.machine.bytes_per_s:
        return []
    if work is None or not work.time_s:
        return []
    rate = device.memory_bytes_per_s * cost.machine.ranks
    source = f"bytes that must move / (step time × {device.kind} {figure(rate / 1e9, 4)} GB/s)"
    value = work.bytes / work.time_s / rate
    return [measure("mbu_decode_stream", value, "estimated", source)]


def probe_measures(capture: Capture) -> list[Measure]:
    """What the run's own probes reached."""
    found = []
    for event in whole_events(capture, "probe"):
        if event.data["probe"] in ("stream", "gemm"):
            data, buffer = event.data, number(event, "buffer_bytes")
            size = f"{buffer / 2**20:.0f} MiB" if buffer is not None else ""
            detail = size or f"{data.get('dtype', '')} N={data.get('n', '')}"
            name = "probe_bandwidth" if data["probe"] == "stream" else "probe_flops"
            when = data["when"]
            at = f"{when} the run" if when in ("before", "after") else f"at the {when} size"
            source = f"probe {at}, {detail}"
            found.append(measure(name, float(data["value"]), "measured", source))
    return found


def host_measure(costs: Sequence[StepCost]) -> list[Measure]:
    """Mean host time of a step: a lower bound where the forward call was not marked."""
    if not costs:
        return []
    provenance, source = origin_of_host(costs)
    value = math.fsum(c.host_s for c in costs) / len(costs)
    if provenance != "bound":
        return [measure("host_per_step", value, provenance, source)]
    # No gap seen and nothing marked: a bound of 0 says nothing.
    return [Measure("host_per_step", value, "s", "bound", source, "lower")] if value else []


def step_measures(
    capture: Capture,
    costs: Sequence[StepCost],
    *,
    cost: CostModel | None,
) -> tuple[Measure, ...]:
    """Collect what a capture tells of KV, work, host and probes."""
    return (
        *kv_measures(capture, costs, cost),
        *work_measures(costs, cost),
        *(stream_measure(capture, costs, cost) if cost is not None else ()),
        *padding_measures(costs, cost),
        *token_rates(costs),
        *host_measure(costs),
        *(m for phase in PHASES for m in phase_measures(capture, phase)),
        *trace_measures(capture),
        *copy_measures(capture),
        *marked_measures(capture, costs),
        *probe_measures(capture),
    )
