"""Gather what the document's rules look at from a capture, and say why the rest is missing."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers import isolated
from stallscope.analyzers.benchmark.facts import is_benchmark_only, judged_trial
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.cost.work import mbu, mfu, of_phases, work_of
from stallscope.analyzers.event_fields import whole_events
from stallscope.analyzers.kernel_cover import covered, why_not_covered
from stallscope.analyzers.load.demand import Demand
from stallscope.analyzers.load.sampled_work import sampled_costs
from stallscope.analyzers.load.span import Span, union_ns
from stallscope.analyzers.phase_counters import decode_or_all
from stallscope.analyzers.quantities import (
    DRAM_THROUGHPUT,
    GPU_BUSY,
    SM_THROUGHPUT,
    is_impossible,
    observe,
    samples_of,
    used_samples,
)
from stallscope.analyzers.queue_measures import queue_wait
from stallscope.analyzers.refusals import refused_allocations
from stallscope.analyzers.rules import RuleEvidence
from stallscope.analyzers.step import decode_share
from stallscope.analyzers.step.budget import StepCost
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure


def _is_cpu(capture: Capture) -> bool:
    return capture.subject.device is not None and capture.subject.device.is_cpu


def memory_fraction(capture: Capture) -> Measure | None:
    """Return the highest memory use of the run's device: a GPU's own, or the host's on a CPU."""
    if _is_cpu(capture):
        return _host_memory(capture)
    best: tuple[float, str] | None = None
    totals = {(s.device, s.t_ns): s.value for s in used_samples(capture, "memory_total_bytes")}
    for used in used_samples(capture, "memory_used_bytes"):
        total = totals.get((used.device, used.t_ns))
        if total and (best is None or used.value / total > best[0]):
            best = (used.value / total, used.device)
    if best is None:
        return None
    source = f"memory used ÷ total, highest sample of {best[1]}"
    return Measure("memory_used", best[0], "fraction", "measured", source)


def _host_memory(capture: Capture) -> Measure | None:
    host = [s for s in capture.device_samples if s.device == "host"]
    totals = [s.value for s in host if s.name == "host_memory_total_bytes"]
    free = [s.value for s in host if s.name == "host_memory_available_bytes"]
    if not totals or not free or not totals[-1]:
        return None
    used = 1.0 - min(free) / totals[-1]
    return Measure("memory_used", used, "fraction", "measured", "1 − lowest available ÷ total")


def allocation_failures(capture: Capture) -> Measure | None:
    """Count refused allocations; none can be said of a run whose steps and end were recorded.

    What the kernel kills for memory leaves no event, only a capture that was cut. A trace of
    kernels shows no allocation that failed.
    """
    failures = refused_allocations(capture)
    is_trace_alone = "trace" in capture.meta and "host" not in capture.meta
    is_recorded = capture.steps and capture.cut is None and not is_trace_alone
    if not failures and not is_recorded:
        return None
    value = float(len(failures))
    return Measure("allocation_failures", value, "count", "measured", "oom and error events")


def busy(capture: Capture, costs: Sequence[StepCost], span: Span | None) -> tuple[Measure, ...]:
    """Return device busy time as an upper bound of how much of the device is used.

    From samples, else from the forward calls' own time over the span.
    """
    sampled = [m for m in observe(capture, "gpu_busy", GPU_BUSY) if m.side is None]
    if sampled:
        m = sampled[0]
        return (Measure(m.name, m.value, m.unit, "bound", m.source, "upper"),)
    known = [c.step for c in costs if c.step.device_ns is not None]
    if not known or span is None or not span.duration_ns or len(known) < len(costs):
        return ()
    forward = union_ns((s.end_ns - (s.device_ns or 0), s.end_ns) for s in known)
    source = "time in the forward call ÷ the run's time"
    value = min(1.0, forward / span.duration_ns)
    return (Measure("gpu_busy", value, "fraction", "bound", source, "upper"),)


def _sm(capture: Capture, costs: Sequence[StepCost], cost: CostModel | None) -> tuple[Measure, ...]:
    if _is_cpu(capture):
        return ()
    found = decode_or_all(covered(capture), "sm_throughput", SM_THROUGHPUT)
    is_decode = any(m.name == "sm_throughput_decode" for m in found)
    chosen = of_phases(costs, "decode") if is_decode else costs
    work = work_of(chosen, cost) if cost is not None else None
    if cost is not None and work is not None:
        found = (*found, mfu(work, cost, "mfu_decode" if is_decode else "mfu"))
    return found


def _dram(
    capture: Capture, costs: Sequence[StepCost], cost: CostModel | None
) -> tuple[tuple[Measure, ...], bool]:
    found = decode_or_all(covered(capture), "dram_throughput", DRAM_THROUGHPUT)
    decode = of_phases(costs, "decode")
    chosen = decode or list(costs)
    work = work_of(chosen, cost) if cost is not None else None
    if cost is None or work is None:
        return found, False
    return (*found, mbu(work, cost)), bool(decode)


def _utilisation(
    capture: Capture, costs: Sequence[StepCost], cost: CostModel | None, span: Span | None
) -> tuple[Measure, ...]:
    found = observe(covered(capture), "sm_throughput", SM_THROUGHPUT)
    value = tuple(m for m in found if m.side is None)
    if value:
        return value
    work = work_of(costs, cost) if cost is not None else None
    bound = (mfu(work, cost),) if cost is not None and work is not None else ()
    return (*found, *bound, *busy(capture, costs, span))


def _said(capture: Capture, name: str) -> str:
    """Repeat in brackets why a counter could not be sampled, if a sampler said so."""
    reasons = (
        e.data["reason"] for e in whole_events(capture, "not_observable") if e.data["what"] == name
    )
    reason = next(reasons, None)
    return "" if reason is None else f" ({reason})"


def _why(capture: Capture) -> dict[str, str]:
    apart = capture.subject.isolated_phases
    if _is_cpu(capture):
        sm = "the device is a CPU: it has no SM counter"
        utilisation = "time in the forward call bounds a CPU's use from above only"
    else:
        sm = "no SM throughput was sampled, and busy time or MFU do not settle it"
        utilisation = "no SM throughput was sampled, and busy time bounds it from above only"
    dram = (
        f"no DRAM throughput was sampled{_said(capture, 'gpm_dram_util')}, and without "
        "model and device there is no MBU"
    )
    uncovered = why_not_covered(capture)
    if uncovered is not None:
        sm = utilisation = dram = uncovered
    requests = "no step or request tells decode from prefill"
    trial = judged_trial(capture)
    if trial is not None and "ttft_s" in trial.latency and not capture.steps:
        requests = "by the client decode's share has only a bound, as its TTFT holds the queue too"
    if not capture.meta.get("trace", {}).get("counted", True):
        requests = "the trace's marks do not say how many requests a step holds"
    failures = "nothing recorded says whether an allocation failed"
    if capture.cut is not None:
        failures = "the capture was cut: a process that is killed for memory leaves no event"
    return {
        "memory": "memory in use was sampled, but not how much the device has"
        if samples_of(capture, "memory_used_bytes")
        else f"no memory samples of the device{_said(capture, 'memory_used_bytes')}",
        "allocation_failures": failures,
        "sm": sm,
        "dram": dram,
        "queue": "neither requests nor queue gauges were recorded",
        "utilisation": utilisation,
        "decode_requests": requests,
        "decode_engine": "no step tells decode from prefill",
        **(
            dict.fromkeys(("queue", "decode_requests", "decode_engine"), isolated.WHY)
            if apart
            else {}
        ),
    }


def _impossible(measures: Sequence[Measure]) -> str | None:
    """Say why a bound of more than all is not believed."""
    wrong = next((m for m in measures if is_impossible(m)), None)
    if wrong is None:
        return None
    what = "bytes" if wrong.name.startswith("mbu") else "FLOPs"
    return (
        f"{wrong.name} ≥ {wrong.value:.3f} is more than the device can do: the count of {what} is "
        "wrong (check dtype, model and device)"
    )


def rule_evidence(
    capture: Capture,
    costs: Sequence[StepCost],
    *,
    cost: CostModel | None,
    demand: Demand,
    span: Span | None,
) -> RuleEvidence:
    """Collect the evidence for the four rules."""
    work = costs or (sampled_costs(capture, cost, span) if span is not None else ())
    dram, is_decode = _dram(capture, work, cost)
    # In isolated phases decode's share is what the repeating made it.
    is_load = not capture.subject.isolated_phases
    is_client = is_benchmark_only(capture)  # its one step is a decode step by construction
    engine = decode_share.from_engine(costs, cost) if is_load and not is_client else None
    sm, used = _sm(capture, work, cost), _utilisation(capture, work, cost, span)
    wrong = {"sm": _impossible(sm), "dram": _impossible(dram), "utilisation": _impossible(used)}
    has_pool = any(c.step.kv_total_bytes for c in costs)
    return RuleEvidence(
        memory=memory_fraction(capture),
        allocation_failures=allocation_failures(capture),
        memory_note="the KV pool is pre-allocated by the engine" if has_pool else None,
        sm=sm,
        dram=dram,
        dram_is_decode=is_decode,
        queue_share=queue_wait(demand),
        utilisation=used,
        decode_requests=decode_share.from_requests(capture, costs)
        if is_load and not is_client
        else None,
        decode_engine=decode_share.engine_measures(engine) if engine is not None else (),
        why=_why(capture) | {what: reason for what, reason in wrong.items() if reason},
    )
