"""From traces, one for each process or rank, to a capture that analyzers can judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stallscope.profiler.capture import Capture, DeviceSample, Event, KernelSummary, Source, Step
from stallscope.profiler.known_devices import known_device
from stallscope.profiler.spec import Subject
from stallscope.profiler.trace.checks import Check, checks
from stallscope.profiler.trace.device_work import at_any, device_work
from stallscope.profiler.trace.figures import device_figures
from stallscope.profiler.trace.found_steps import find_steps
from stallscope.profiler.trace.kernel_classes import kernel_class
from stallscope.profiler.trace.kernel_rows import DeviceRows, Mask, Phased, kernel_rows
from stallscope.profiler.trace.phases import Joined, JoinedBy, MarkedStep
from stallscope.profiler.trace.steady import Window, steady_window
from stallscope.profiler.trace.step_rows import step_rows
from stallscope.profiler.trace.timeline import UNKNOWN, Copies, Kernels, Trace

OTHER = "other"  # the phase of what belongs to no step


@dataclass(frozen=True, slots=True)
class _Reduced:
    """What one trace comes to."""

    steps: tuple[Step, ...]
    kernels: tuple[KernelSummary, ...]
    samples: tuple[DeviceSample, ...]
    events: tuple[Event, ...]
    checks: tuple[Check, ...]


def capture_of(traces: Sequence[Trace]) -> Capture:
    """Reduce traces to one capture; several are taken as ranks of one run.

    Raises ValueError without a trace.
    """
    if not traces:
        raise ValueError("no trace to reduce")
    ranks = _ranks(traces)
    reduced: list[_Reduced] = []
    for trace, rank in zip(traces, ranks, strict=True):
        first_id = sum(len(r.steps) for r in reduced)
        reduced.append(_reduce(trace, rank, first_id=first_id, alone=len(traces) == 1))
    found = _check_events([r.checks for r in reduced], ranks, traces)
    return Capture(
        subject=_subject(traces),
        steps=tuple(s for r in reduced for s in r.steps),
        kernels=tuple(k for r in reduced for k in r.kernels),
        device_samples=tuple(s for r in reduced for s in r.samples),
        events=(*found, *(e for r in reduced for e in r.events)),
        sources=tuple(
            Source(i, trace.kind, trace.path, "trace", 0, 0) for i, trace in enumerate(traces)
        ),
        meta=_meta(traces, ranks),
    )


def _ranks(traces: Sequence[Trace]) -> tuple[int, ...]:
    stated = [trace.rank for trace in traces]
    known = [rank for rank in stated if rank is not None]
    if len(known) == len(traces) and len(set(known)) == len(known):
        return tuple(known)
    return tuple(range(len(traces)))


def _subject(traces: Sequence[Trace]) -> Subject:
    devices = [device for trace in traces for device in trace.devices]
    products = {device.product for device in devices}
    product = products.pop() if len(products) == 1 else None
    if product is None:
        return Subject(num_devices=max(1, len(devices)))
    memory = devices[0].facts.get("memory_bytes")
    spec = known_device(product, None if memory is None else int(memory))
    return Subject(device=spec, num_devices=len(devices))


def _meta(traces: Sequence[Trace], ranks: Sequence[int]) -> dict[str, Any]:
    products = sorted({d.product for t in traces for d in t.devices if d.product})
    return {
        "ended": {},
        "trace": {
            "tools": sorted({trace.tool for trace in traces}),
            "ranks": list(ranks),
            "devices": products,
        },
    }


def _reduce(trace: Trace, rank: int, *, first_id: int, alone: bool) -> _Reduced:
    kernels, copies = trace.kernels, trace.copies
    seen = find_steps(trace)
    of_kernels, of_copies = seen.of_kernels, seen.of_copies
    devices = [
        device_work(trace, index, of_kernels, of_copies) for index in range(len(trace.devices))
    ]
    busy = at_any([device.busy for device in devices])
    steps = step_rows(seen.steps, devices, rank=rank, first_id=first_id)
    window = steady_window(busy, at_any([device.queued for device in devices]), steps)
    steps = tuple(_begun_within(step, window) for step in steps)
    t_ns = window.start_ns if window is not None else 0
    found = _joined_events(of_kernels, rank, t_ns) if seen.steps else []
    summaries: list[KernelSummary] = []
    samples: list[DeviceSample] = []
    phased = _phased(seen.steps, of_kernels, of_copies)
    classes = [kernel_class(name) for name in trace.names]
    for index, device in enumerate(trace.devices if window is not None else ()):
        assert window is not None
        rows = DeviceRows(
            device.label if alone else f"rank {rank} {device.label}",
            rank,
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
    return _Reduced(steps, tuple(summaries), tuple(samples), tuple(found), tuple(checked))


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


def _check_events(
    found: Sequence[Sequence[Check]], ranks: Sequence[int], traces: Sequence[Trace]
) -> Iterator[Event]:
    """Make one event of each check. Ranks that answer nothing block a verdict only together."""
    for sentence in _missing_ranks(traces, ranks):
        yield Event(0, "check", None, {"sentence": sentence})
    blocks = all(any(check.bottleneck for check in of_rank) for of_rank in found)
    for rank, of_rank in zip(ranks, found, strict=True):
        for check in of_rank:
            sentence = check.sentence if len(found) == 1 else f"Rank {rank}: {check.sentence}"
            data: dict[str, Any] = {"sentence": sentence}
            if blocks and check.bottleneck is not None:
                data |= {"class": check.bottleneck, "blocks": ["verdict"]}
            yield Event(0, "check", None, data)


def _missing_ranks(traces: Sequence[Trace], ranks: Sequence[int]) -> Iterator[str]:
    """Name the ranks of the run that no trace is of, where the traces say how many there were."""
    stated = [int(trace.facts["world_size"]) for trace in traces if "world_size" in trace.facts]
    size = max(stated, default=0)
    if size <= len(traces):
        return
    if any(trace.rank is None for trace in traces):
        yield f"The run had {size} ranks; {len(traces)} of them were given."
        return
    missing = ", ".join(str(rank) for rank in range(size) if rank not in ranks)
    yield (
        f"The run had {size} ranks; {len(traces)} of them were given. Missing: {missing}. "
        "How the given ones wait for those cannot be told."
    )


def _joined_events(joined: Joined, rank: int, t_ns: int) -> list[Event]:
    """Say how kernels were told to belong to steps, as shares of their number."""
    total = len(joined.how)
    if not total:
        return []
    counts = np.bincount(joined.how, minlength=len(JoinedBy))
    shares = {by.name.lower(): float(counts[by] / total) for by in JoinedBy if counts[by]}
    return [Event(t_ns, "trace_join", None, {"rank": rank, "kernels": total, **shares})]
