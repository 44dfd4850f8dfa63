"""The figures of a run over time: by its steps, its engines' samples and its devices' counters."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter

from stallscope.analyzers.load.engines import moments, queued
from stallscope.analyzers.load.pool_use import used_share
from stallscope.analyzers.load.sampled_steps import intervals
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.over_time.figures import FIGURES
from stallscope.analyzers.over_time.track import Track
from stallscope.analyzers.quantities import (
    DRAM_THROUGHPUT,
    GPU_BUSY,
    TENSOR_ACTIVE,
    samples_of,
    used_samples,
)
from stallscope.analyzers.ranks import by_rank
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.step.limit import CLASS_PARTS
from stallscope.profiler.capture import Capture, Step
from stallscope.profiler.evidence import Provenance

_NS = 1e-9
_LEAST = {"requests": 1.0, "fraction": 0.05}  # by unit: a smaller change names no other limit
_Points = list[tuple[float, float]]


def of_run(capture: Capture, costs: Sequence[StepCost], span: Span) -> tuple[Track, ...]:
    """Return what the whole run's limit may show in."""
    return (*_gauges(capture, costs, span), *of_steps(costs, span), *_counters(capture, span))


def of_steps(costs: Sequence[StepCost], span: Span) -> Iterator[Track]:
    """Yield how long steps take, and the share of each resource in them."""
    times = [(c.step.start_ns - span.start_ns) * _NS for c in costs]
    lengths = [c.time_s for c in costs]
    yield from _track("step_time", zip(times, lengths, strict=True), "measured", "steps")
    timed = [(t, c) for t, c in zip(times, costs, strict=True) if c.floor is not None and c.time_s]
    for name in CLASS_PARTS if timed else ():
        points = [(t, _share(c, name)) for t, c in timed]
        provenance: Provenance = "derived" if name == "host" else "estimated"
        yield from _track(f"share_{name}", points, provenance, "step budget")


def _share(cost: StepCost, bottleneck: str) -> float:
    if bottleneck == "host":
        return cost.host_s / cost.time_s
    floor = cost.floor or {}
    return sum(floor.get(part, 0.0) for part in CLASS_PARTS[bottleneck]) / cost.time_s


def _gauges(capture: Capture, costs: Sequence[StepCost], span: Span) -> Iterator[Track]:
    if costs and any(c.step.running is not None or c.step.waiting is not None for c in costs):
        yield from _step_gauges(costs, span)
    else:
        yield from _sampled_gauges(capture, span)
    for name in ("input_tokens", "output_tokens"):
        yield from _rate(capture, name, span)


def _step_gauges(costs: Sequence[StepCost], span: Span) -> Iterator[Track]:
    """Yield what steps say of the engine; between two steps that share no request it is empty."""
    running: _Points = []
    waiting: _Points = []
    used: _Points = []
    previous = None
    for step in max(by_rank([c.step for c in costs]), key=_in_system):
        at = (step.start_ns - span.start_ns) * _NS
        if previous and step.start_ns > previous.end_ns and not _is_carried(previous, step):
            emptied = (previous.end_ns - span.start_ns) * _NS
            running.append((emptied, 0.0))
            waiting.append((emptied, 0.0))
        if step.running is not None:
            running.append((at, float(step.running)))
        if step.waiting is not None:
            waiting.append((at, float(step.waiting)))
        if step.kv_total_bytes and step.kv_used_bytes is not None:
            used.append((at, step.kv_used_bytes / step.kv_total_bytes))
        previous = step
    for name, points in (("running", running), ("waiting", waiting), ("kv_used", used)):
        yield from _track(name, points, "measured", "the engine's steps", is_held=True)


def _is_carried(previous: Step, step: Step) -> bool:
    return bool(step.decode_requests or previous.waiting)


def _in_system(steps: Sequence[Step]) -> int:
    return sum((s.running or 0) + (s.waiting or 0) for s in steps)


def _sampled_gauges(capture: Capture, span: Span) -> Iterator[Track]:
    found = moments(capture.engine_samples)
    source = "engine samples"
    at = [(m.start_ns - span.start_ns) * _NS for m in found]
    running = [sum(v["running"] for v in m.engines.values()) for m in found]
    waiting = [sum(queued(v) for v in m.engines.values()) for m in found]
    yield from _track("running", zip(at, running, strict=True), "measured", source, is_held=True)
    yield from _track("waiting", zip(at, waiting, strict=True), "measured", source, is_held=True)
    used: _Points = []
    for t, moment in zip(at, found, strict=True):
        shares = [s for v in moment.engines.values() if (s := used_share(v)) is not None]
        if shares:
            used.append((t, max(shares)))
    several = any(len(m.engines) > 1 for m in found)
    source += ", the fullest engine" if several else ""
    yield from _track("kv_used", used, "measured", source, is_held=True)


def _rate(capture: Capture, name: str, span: Span) -> Iterator[Track]:
    """Yield tokens per second between two samples; of several engines their sum."""
    found = moments(capture.engine_samples)
    if len(found) < 2 or not any(f"{name}_total" in v for v in found[-1].engines.values()):
        return
    points: _Points = []
    for now, after in zip(found, found[1:], strict=False):
        within = Span(now.start_ns, after.start_ns)
        rises = [i.rise(f"{name}_total") for i in intervals((now, after), within)]
        known = [rise for rise in rises if rise is not None]
        if known and now.duration_ns:
            at = (now.start_ns - span.start_ns) * _NS
            points.append((at, sum(known) / (now.duration_ns * _NS)))
    yield from _track(f"{name}_rate", points, "derived", "engine counters")


def _counters(capture: Capture, span: Span) -> Iterator[Track]:
    if capture.subject.device is not None and capture.subject.device.is_cpu:
        return
    choices = {
        "dram_throughput": DRAM_THROUGHPUT.values,
        "tensor_active": TENSOR_ACTIVE.values,
        "gpu_busy": GPU_BUSY.values,
        "sm_clock": ("sm_clock_hz",),
    }
    for name, sampled in choices.items():
        chosen = next((s for s in sampled if len(samples_of(capture, s)) > 1), None)
        if chosen is not None:
            rows = sorted(used_samples(capture, chosen), key=attrgetter("t_ns"))
            points = [
                ((t_ns - span.start_ns) * _NS, statistics.fmean(s.value for s in at_once))
                for t_ns, at_once in groupby(rows, key=attrgetter("t_ns"))
            ]
            yield from _track(name, points, "measured", f"{chosen} samples")


def _track(
    name: str,
    points: Iterable[tuple[float, float]],
    provenance: Provenance,
    source: str,
    *,
    is_held: bool = False,
) -> Iterator[Track]:
    ordered = sorted(points, key=itemgetter(0))
    if not ordered:
        return
    times, values = zip(*ordered, strict=True)
    unit = FIGURES[name][0]
    least = _LEAST.get(unit, 0.0)
    yield Track(name, unit, provenance, source, times, values, least, is_held)
