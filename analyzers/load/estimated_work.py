"""MFU and MBU of a server: by the engine's own estimates of its work, else by the cost model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stallscope.analyzers.cost.calibration import peak_flops
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.cost.work import mbu, mfu, work_of
from stallscope.analyzers.load.engines import moments
from stallscope.analyzers.load.sampled_steps import Interval, intervals
from stallscope.analyzers.load.sampled_work import sampled_costs
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.measures import measure
from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure
from stallscope.profiler.wording import figure

_FLOPS = "estimated_flops_total"
_BYTES = ("estimated_read_bytes_total", "estimated_write_bytes_total")


@dataclass(frozen=True, slots=True)
class Counted:
    """What an engine says that one GPU did in a second with requests; None where it says nothing.

    vLLM counts with --enable-mfu-metrics alone: else its counters stand at 0.
    """

    flops_per_s: float | None
    bytes_per_s: float | None


def counted_work(capture: Capture, span: Span) -> Counted:
    """Return the engine's own estimates over the time in which something ran."""
    busy = [i for i in intervals(moments(capture.engine_samples), span) if i.running > 0]
    flops, read = _rate(busy, _FLOPS), _rate(busy, _BYTES[0])
    written = _rate(busy, _BYTES[1])
    return Counted(flops or None, (read + (written or 0.0)) or None if read is not None else None)


def _rate(busy: list[Interval], name: str) -> float | None:
    rises = [(i.seconds, rise) for i in busy if (rise := i.rise(name)) is not None]
    seconds = sum(s for s, _ in rises)
    return sum(rise for _, rise in rises) / seconds if seconds else None


def _counted_measures(capture: Capture, span: Span) -> Iterator[Measure]:
    device = capture.subject.device
    if device is None:
        return
    found, peak = counted_work(capture, span), peak_flops(capture.subject)
    over = "of one GPU, the engine's own estimate ÷ (time with requests ×"
    if peak is not None and found.flops_per_s is not None:
        source = f"{_FLOPS} {over} {device.kind} {figure(peak / 1e12, 4)} TFLOP/s)"
        yield measure("mfu", found.flops_per_s / peak, "estimated", source)
    if found.bytes_per_s is not None:
        rate = device.memory_bytes_per_s
        source = f"{' + '.join(_BYTES)} {over} {device.kind} {figure(rate / 1e9, 4)} GB/s)"
        yield measure("mbu", found.bytes_per_s / rate, "estimated", source)


def work_measures_of_samples(
    capture: Capture, cost: CostModel | None, span: Span
) -> tuple[Measure, ...]:
    """Return MFU and MBU where the device is known: the engine's estimates, else the model's."""
    counted = tuple(_counted_measures(capture, span))
    costs = sampled_costs(capture, cost, span)
    work = work_of(costs, cost) if cost is not None and costs else None
    if cost is None or work is None:
        return counted
    names = {m.name for m in counted}
    modelled = (mfu(work, cost), mbu(work, cost))
    return (*counted, *(m for m in modelled if m.name not in names))


def decide_by_estimates(capture: Capture, span: Span, t: Thresholds) -> Decision | None:
    """Call a served engine bound by what its own estimates fill; more than all is no estimate."""
    shares = {m.name: m.value for m in _counted_measures(capture, span)}
    flops, moved = shares.get("mfu"), shares.get("mbu")
    if flops is not None and t.tensor_bound <= flops <= 1.0:
        reason = f"the engine's own estimate of its FLOPs is {percent(flops)} of the peak"
        return _estimated("compute", flops, reason)
    if flops is None or moved is None or flops >= t.tensor_low:
        return None
    if t.dram_bound <= moved <= 1.0:
        reason = f"the engine's own estimate of the bytes it moves is {percent(moved)} of the "
        reason += f"memory's bandwidth, and of its FLOPs {percent(flops)} of the peak"
        return _estimated("bandwidth", moved, reason)
    return None


def _estimated(bottleneck: str, share: float, reason: str) -> Decision:
    quality = QUALITY["estimated"]
    return Decision(bottleneck, share, 0.0, None, 1.0 - share, quality, reason, cap=0.6)
