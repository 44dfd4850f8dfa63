"""Device counters of prefill and of decode, where a stretch is long enough to have its own."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator

from stallscope.analyzers.quantities import (
    DRAM_THROUGHPUT,
    GPU_BUSY,
    SM_THROUGHPUT,
    TENSOR_ACTIVE,
    Quantity,
    observe,
    samples_of,
)
from stallscope.analyzers.stretches import samples_in, stretches
from stallscope.analyzers.trace_figures import phase_samples
from stallscope.profiler.capture import LEAST_STRETCH_NS, SAMPLE_WINDOW_NS, Capture
from stallscope.profiler.evidence import Measure, NotObservable

PHASES = ("prefill", "decode")
QUANTITIES = {
    "sm_throughput": SM_THROUGHPUT,
    "dram_throughput": DRAM_THROUGHPUT,
    "tensor_active": TENSOR_ACTIVE,
    "gpu_busy": GPU_BUSY,
}
# Figures of single kernels and of whole traces: their time is not that of what they speak of.
_NOT_OF_THEIR_TIME = ("ncu_", "trace_")
# A tracer knows every kernel and samples every fraction of a millisecond, so its figures are of
# steps, not of stretches of seconds.
_BY_STEP = ("nsys_", "trace_")


def phase_measures(capture: Capture, phase: str) -> tuple[Measure, ...]:
    """Return the phase's own counters, named `NAME_PHASE`; none without a stretch of it."""
    seen = seen_in(capture, phase)
    found = [
        m for name, quantity in QUANTITIES.items() for m in _observe(seen, name, quantity, phase)
    ]
    return (*found, *_power(seen, phase))


def decode_or_all(capture: Capture, name: str, quantity: Quantity) -> tuple[Measure, ...]:
    """Return what was sampled of a quantity in decode, where that can be told, else in the run.

    A value over the whole run (a kernel profile) goes before bounds in decode.
    """
    decode = _observe(seen_in(capture, "decode"), name, quantity, "decode")
    whole = observe(capture, name, quantity)
    only_whole_has_value = any(m.side is None for m in whole) and all(m.side for m in decode)
    return whole if only_whole_has_value else decode or whole


def unobserved_phases(capture: Capture) -> Iterator[NotObservable]:
    """Say of each phase that occurred why the device's counters do not speak of it."""
    sampled = {name for q in QUANTITIES.values() for name in _names(q)} | {"power_mw"}
    is_cpu = capture.subject.device is not None and capture.subject.device.is_cpu
    if is_cpu or not any(samples_of(capture, name) for name in sampled):
        return
    for phase in PHASES:
        occurs = any(s.phase in (phase, "mixed") and not s.warmup for s in capture.steps)
        if occurs and not phase_measures(capture, phase):
            yield NotObservable(
                f"device counters in {phase}",
                _why(capture, phase),
                f"run with --isolate-phases, or {phase} for longer at a time",
            )


def _why(capture: Capture, phase: str) -> str:
    any_length = stretches(capture.steps, phase, least_ns=0)
    longest = max((s.duration_ns for s in any_length), default=0)
    if longest >= LEAST_STRETCH_NS:
        return f"no sample lies a second or more inside a stretch of only {phase} steps"
    length = f"the longest stretch of only {phase} steps took {longest // 10**7 / 100:g} s"
    return (
        f"{length if longest else f'no step was only {phase}'}; a sample averages over up to "
        f"{SAMPLE_WINDOW_NS / 1e9:g} s, so stretches under {LEAST_STRETCH_NS / 1e9:g} s have none "
        "of their own"
    )


def _names(quantity: Quantity) -> tuple[str, ...]:
    names = (*quantity.values, *quantity.lower_bounds, *quantity.upper_bounds)
    return tuple(name for name in names if not name.startswith(_NOT_OF_THEIR_TIME))


def seen_in(capture: Capture, phase: str) -> Capture:
    """Return the capture with only those samples that speak of the phase alone."""
    foreign = (*_NOT_OF_THEIR_TIME, *_BY_STEP)
    kept = tuple(s for s in capture.device_samples if not s.name.startswith(foreign))
    of_time = dataclasses.replace(capture, device_samples=kept)
    if kept:
        of_time = samples_in(of_time, phase)
    samples = (*of_time.device_samples, *phase_samples(capture, phase))
    return dataclasses.replace(capture, device_samples=samples)


def _source(source: str, phase: str) -> str:
    if any(name in source for name in _BY_STEP):
        return f"{source} within {phase} steps"
    return f"{source} within {phase} stretches of {LEAST_STRETCH_NS / 1e9:g} s or more"


def _observe(seen: Capture, name: str, quantity: Quantity, phase: str) -> tuple[Measure, ...]:
    return tuple(
        dataclasses.replace(m, source=_source(m.source, phase))
        for m in observe(seen, f"{name}_{phase}", quantity)
    )


def _power(seen: Capture, phase: str) -> tuple[Measure, ...]:
    if seen.subject.device is not None and seen.subject.device.is_cpu:
        return ()
    values = [s.value / 1e3 for s in samples_of(seen, "power_mw")]
    if not values:
        return ()
    source = _source("mean of power_mw samples", phase)
    return (Measure(f"power_{phase}", statistics.fmean(values), "W", "measured", source),)
