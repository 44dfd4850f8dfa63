"""From one trace to the rows that a capture holds of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stallscope.profiler.capture import DeviceSample, Event, KernelSummary, Step
from stallscope.profiler.trace.checks import Check, checks
from stallscope.profiler.trace.device_work import at_any, device_work
from stallscope.profiler.trace.figures import device_figures
from stallscope.profiler.trace.found_steps import find_steps
from stallscope.profiler.trace.kernel_classes import kernel_class
from stallscope.profiler.trace.kernel_rows import DeviceRows, Mask, Phased, kernel_rows
from stallscope.profiler.trace.phases import Joined, JoinedBy, MarkedStep
from stallscope.profiler.trace.steady import Window, steady_window
from stallscope.profiler.trace.step_rows import step_rows
from stallscope.profiler.trace.timeline import UNKNOWN, Copies, Kernels, Trace, TracedDevice

OTHER = "other"  # the phase of what belongs to no step


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a trace is from and when: `unix_ns` is the wall clock at its time 0, `span_ns` when
    something of it ran, on its own clock. `world_size` is how many ranks its run had."""

    kind: str
    tool: str
    path: str
    rank: int | None
    world_size: int | None
    unix_ns: int | None = None
    span_ns: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Reduced:
    """What one trace comes to: small, whatever its size."""

    origin: Origin
    devices: tuple[TracedDevice, ...]
    holds: bool  # a kernel, a step or an operator: something to judge
    counted: bool  # every step's mark says how many requests it holds
    steps: tuple[Step, ...]
    kernels: tuple[KernelSummary, ...]
    samples: tuple[DeviceSample, ...]
    events: tuple[Event, ...]
    checks: tuple[Check, ...]


def reduce_trace(trace: Trace) -> Reduced:
    """Reduce one trace. Its rank is 0 and its steps count from 0 until ranks are put together."""
    kernels, copies = trace.kernels, trace.copies
    seen = find_steps(trace)
    of_kernels, of_copies = seen.of_kernels, seen.of_copies
    devices = [
        device_work(trace, index, of_kernels, of_copies) for index in range(len(trace.devices))
    ]
    busy = at_any([device.busy for device in devices])
    steps = step_rows(seen.steps, devices, rank=0)
    window = steady_window(busy, at_any([device.queued for device in devices]), steps)
    steps = tuple(_begun_within(step, window) for step in steps)
    t_ns = window.start_ns if window is not None else 0
    found = _joined_events(of_kernels, t_ns) if seen.steps else []
    summaries: list[KernelSummary] = []
    samples: list[DeviceSample] = []
    phased = _phased(seen.steps, of_kernels, of_copies)
    classes = [kernel_class(name) for name in trace.names]
    for index, device in enumerate(trace.devices if window is not None else ()):
        assert window is not None
        rows = DeviceRows(
            device.label,
            0,
            _inside(kernels, index, window) & (phased.kernels != UNKNOWN),
            _inside(copies, index, window) & (phased.copies != UNKNOWN),
        )
        summaries += kernel_rows(
            rows,
            devices[index].kernels,
            kernels,
            copies,
            phased,
            names=trace.names,
            classes=classes,
        )
        figures = device_figures(trace, index, rows, devices[index], steps, window)
        samples += figures.samples
        found += figures.events
    checked = [*checks(trace, busy, window, seen.steps)]
    if seen.evidence is not None:
        checked.append(Check(f"No mark tells the steps apart, but kernels recur: {seen.evidence}."))
    return Reduced(
        origin=Origin(
            trace.kind,
            trace.tool,
            trace.path,
            trace.rank,
            _world_size(trace),
            trace.unix_ns,
            None if window is None else (window.start_ns, window.end_ns),
        ),
        devices=trace.devices,
        holds=bool(len(kernels) or steps or len(trace.operators)),
        counted=all(s.mark.counts for s in seen.steps if not s.mark.warmup),
        steps=steps,
        kernels=tuple(summaries),
        samples=tuple(samples),
        events=tuple(found),
        checks=tuple(checked),
    )


def _world_size(trace: Trace) -> int | None:
    size = trace.facts.get("world_size")
    return size if isinstance(size, int) else None


def _begun_within(step: Step, window: Window | None) -> Step:
    """Cut from a step what the window leaves out of its beginning."""
    if window is None or step.warmup or step.start_ns >= window.start_ns:
        return step
    return step._replace(start_ns=min(window.start_ns, step.end_ns))


def _phased(steps: Sequence[MarkedStep], of_kernels: Joined, of_copies: Joined) -> Phased:
    """Give each row its step's phase; rows of warm-up have none, rows of no step are "other"."""
    names = tuple(sorted({s.mark.phase for s in steps if not s.mark.warmup} | {OTHER}))
    # The last place stands for no step, which is what index −1 picks.
    by_step = [UNKNOWN if s.mark.warmup else names.index(s.mark.phase) for s in steps]
    places = np.array([*by_step, names.index(OTHER)], dtype=np.int32)
    return Phased(names, places[of_kernels.step], places[of_copies.step])


def _inside(rows: Kernels | Copies, device: int, window: Window) -> Mask:
    begins: Mask = (rows.start_ns >= window.start_ns) & (rows.start_ns < window.end_ns)
    here: Mask = rows.device == device
    return begins & here


def _joined_events(joined: Joined, t_ns: int) -> list[Event]:
    """Say how kernels were told to belong to steps, as shares of their number."""
    total = len(joined.how)
    if not total:
        return []
    counts = np.bincount(joined.how, minlength=len(JoinedBy))
    shares = {by.name.lower(): float(counts[by] / total) for by in JoinedBy if counts[by]}
    return [Event(t_ns, "trace_join", None, {"kernels": total, **shares})]
