"""Figures that a verdict compared and no other measure tells."""

from __future__ import annotations

from collections.abc import Iterator

from stallscope.analyzers.benchmark.facts import is_benchmark_only
from stallscope.analyzers.benchmark.latency import client_latencies
from stallscope.analyzers.cost.kv_bytes import kv_bytes_per_token
from stallscope.analyzers.event_fields import number
from stallscope.analyzers.judge import Judgement, offered_concurrency
from stallscope.analyzers.load.standstill import standstill_share
from stallscope.analyzers.load.weights_read import weights_share
from stallscope.analyzers.measures import measure
from stallscope.analyzers.prepared import Run
from stallscope.analyzers.refusals import ROOM_MEASURES, refused_allocations
from stallscope.analyzers.step.busy_wait import busiest_share, power_share
from stallscope.analyzers.step.clocks import clock_shares
from stallscope.analyzers.step.core_measures import core_measures
from stallscope.analyzers.step.power_cap import capped_share
from stallscope.analyzers.weights_alone import weights_measure
from stallscope.profiler.evidence import Measure

_FEW = 20  # gaps between tokens: with fewer a 99th percentile is one gap's


def cause_measures(run: Run) -> Iterator[Measure]:
    """Yield what edges of the coupling ask for: copies of KV, weights in memory, the ITL's tail."""
    cost = run.cost
    if cost is not None and cost.machine.ranks > 1:
        ranks = cost.machine.ranks
        once = kv_bytes_per_token(cost.spec, cost.kv_dtype)
        each = kv_bytes_per_token(cost.spec, cost.kv_dtype, tensor_parallel=ranks)
        if once:
            source = f"KV bytes per token on one of {ranks} devices × {ranks} ÷ those of one device"
            yield measure("kv_copies", ranks * each / once, "derived", source)
    held = weights_measure(run.capture, cost)
    if held is not None:
        yield held
    gaps = client_latencies(run.capture).get("itl_s")
    if gaps is not None and gaps.p50 and gaps.p99 is not None and (gaps.n or 0) >= _FEW:
        yield measure("itl_tail", gaps.p99 / gaps.p50, "derived", "ITL p99 ÷ p50")


def room_measures(run: Run) -> Iterator[Measure]:
    """Yield what the engine said of the room for its KV cache when it refused to start."""
    event = next(iter(refused_allocations(run.capture)), None)
    for field, name in ROOM_MEASURES.items():
        value = None if event is None else number(event, field)
        if value is not None:
            yield measure(name, value, "measured", "the engine's refusal, in its log")


def decision_measures(run: Run, judgement: Judgement) -> Iterator[Measure]:
    """Yield what was offered, the worst engine's queue, standing still, and the clocks."""
    capture, worst = run.capture, judgement.demand.worst_engine_share
    asked = offered_concurrency(capture)
    if asked is not None and not is_benchmark_only(capture):
        yield measure("in_flight_offered", asked, "measured", "the clients, as stated")
    if worst is not None:
        source = "gauges of each engine (Little's law)"
        yield measure("queue_wait_share_worst", worst, "derived", source)
    stood = standstill_share(capture.engine_samples, run.span)
    if stood > 0:
        source = "requests there, and neither a token counted nor KV use changed"
        yield measure("standstill_share", stood, "derived", source)
    read = None
    if judgement.branch == "samples" and run.cost is not None:
        read = weights_share(capture, run.cost, run.span)
    if read is not None:
        source = "weight bytes × steps by the gauges ÷ (time of decode alone × bandwidth)"
        yield measure("weights_read_share", read, "bound", source, side="lower")
    drawn, capped = power_share(capture), capped_share(capture)
    busiest = busiest_share(capture)
    if drawn is not None and busiest is not None:
        source = "mean of the samples of the device that was busy most"
        yield measure("gpu_busy_busiest", busiest, "measured", source)
    if drawn is not None:
        source = "mean power_mw ÷ power_limit_mw, over the devices"
        yield measure("power_of_limit", drawn, "derived", source)
    if capped is not None:
        yield measure("power_capped", capped, "measured", "samples of clock_event_reasons")
    yield from core_measures(capture, run.span)
    yield from room_measures(run)
    for name, value in clock_shares(capture).items():
        source = f"mean {name}_clock_hz ÷ highest {name}_clock_max_hz"
        yield measure(f"{name}_clock_share", value, "derived", source)
