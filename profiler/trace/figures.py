"""Figures of one traced device: how busy it was, why it idled, how kernels were launched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stallscope.profiler.capture import DeviceSample, Event, Step
from stallscope.profiler.trace.device_work import DeviceWork
from stallscope.profiler.trace.idle_figures import figure, idle_figures
from stallscope.profiler.trace.intervals import Union, covered_ns, union, within
from stallscope.profiler.trace.kernel_rows import DeviceRows
from stallscope.profiler.trace.steady import Window
from stallscope.profiler.trace.timeline import CopyKind, Trace

PINNED, PAGEABLE = 0, 1
PHASES = ("prefill", "decode")
BUSY_BINS = 100  # of the window, for the course of the busy share
BINS = 500  # of a device metric's samples over the window


@dataclass(frozen=True, slots=True)
class DeviceFigures:
    """Samples and events of one device."""

    samples: tuple[DeviceSample, ...]
    events: tuple[Event, ...]


def device_figures(
    trace: Trace,
    index: int,
    rows: DeviceRows,
    work: DeviceWork,
    steps: Sequence[Step],
    window: Window,
) -> DeviceFigures:
    """Return a device's figures within the window.

    Events are of kind `trace_figure` {name, value, unit, device, phase?, source}; docs/metrics.md
    lists their names. `trace_kernel_busy` is the share of the window in which a kernel ran.
    """
    busy = within(work.kernels, window.start_ns, window.end_ns)
    samples = [
        *_busy_samples(busy, rows.label, window),
        *_metric_samples(trace, index, rows.label, window),
    ]
    found = [
        *_launches(trace, rows, window),
        *idle_figures(trace, rows, work, window),
        *_copied(trace, rows),
        *_phase_busy(work, steps),
        *_phase_metrics(trace, index, steps),
    ]
    events = (
        Event(window.start_ns, "trace_figure", None, {"device": rows.label, **figure})
        for figure in found
    )
    return DeviceFigures(tuple(samples), tuple(events))


def _launches(trace: Trace, rows: DeviceRows, window: Window) -> Iterator[dict[str, object]]:
    count = int(np.count_nonzero(rows.kernels))
    if not count or not window.length_ns:
        return
    kernels = trace.kernels
    lengths = (kernels.end_ns - kernels.start_ns)[rows.kernels]
    yield figure("kernel_rate", count / window.length_ns * 1e9, "1/s", "kernels ÷ traced window")
    yield figure("kernel_length_mean", float(lengths.mean()) * 1e-9, "s", "mean kernel duration")
    yield figure("trace_window", window.length_ns * 1e-9, "s", "from the first step to the last")
    in_graphs = int(np.count_nonzero(kernels.graph[rows.kernels] >= 0))
    yield figure(
        "kernels_in_graphs", in_graphs / count, "fraction", "kernels that a CUDA graph launched"
    )


def _copied(trace: Trace, rows: DeviceRows) -> Iterator[dict[str, object]]:
    copies = trace.copies
    in_link = rows.copies & (copies.kind == CopyKind.HOST_TO_DEVICE)
    if in_link.any():
        size = int(copies.bytes[in_link].sum())
        yield figure("host_to_device_bytes", size, "bytes", "host-to-device copies in the window")
        known = in_link & (copies.pageable <= PAGEABLE)
        if known.any():
            share = copies.bytes[known & (copies.pageable == PAGEABLE)].sum()
            total = copies.bytes[known].sum()
            if total:
                yield figure(
                    "pageable_share",
                    float(share / total),
                    "fraction",
                    "bytes copied from pageable memory ÷ all host-to-device bytes",
                )


def _busy_samples(busy: Union, label: str, window: Window) -> Iterator[DeviceSample]:
    """Give the busy share of each of equal parts of the window, so that their mean is the whole's.

    None where no kernel ran at all: then the trace does not speak of kernels.
    """
    bins = min(BUSY_BINS, window.length_ns)
    if not len(busy) or not bins:
        return
    edges = window.start_ns + np.arange(bins + 1, dtype=np.int64) * window.length_ns // bins
    shares = covered_ns(busy, edges[:-1], edges[1:]) / np.diff(edges)
    # Parts differ by a nanosecond in length; what that moves the mean by is put right.
    shares *= busy.total_ns / window.length_ns / shares.mean()
    for t_ns, share in zip(edges[1:].tolist(), shares.tolist(), strict=True):
        yield DeviceSample(t_ns, label, "trace_kernel_busy", min(1.0, share), "fraction")


def _phase_busy(work: DeviceWork, steps: Sequence[Step]) -> Iterator[dict[str, object]]:
    """Give the share of each phase's steps in which a kernel ran, and in which one was queued."""
    if not len(work.kernels):
        return
    phases = sorted({s.phase for s in steps if not s.warmup})
    spans = [_alone(phase, steps) for phase in phases]
    starts = np.concatenate([np.empty(0, dtype=np.int64), *(span.start_ns for span in spans)])
    ends = np.concatenate([np.empty(0, dtype=np.int64), *(span.end_ns for span in spans)])
    busy, queued = covered_ns(work.kernels, starts, ends), covered_ns(work.queued, starts, ends)
    place = 0
    for phase, span in zip(phases, spans, strict=True):
        here = slice(place, place := place + len(span))
        if not span.total_ns:
            continue
        share, waiting = busy[here].sum() / span.total_ns, queued[here].sum() / span.total_ns
        source = f"time with a kernel ÷ time of {phase} steps"
        yield figure("trace_kernel_busy", float(share), "fraction", source, phase=phase)
        if waiting:
            source = f"time with work queued and none running ÷ time of {phase} steps"
            yield figure("idle_in_queued", float(waiting), "fraction", source, phase=phase)


def _metric_samples(trace: Trace, index: int, label: str, window: Window) -> Iterator[DeviceSample]:
    """Average each metric over bins of the window, so that each bin weighs alike."""
    for series in trace.series:
        if series.device != index or not window.length_ns:
            continue
        inside = (series.t_ns >= window.start_ns) & (series.t_ns <= window.end_ns)
        place = (series.t_ns[inside] - window.start_ns) * BINS // (window.length_ns + 1)
        counts = np.bincount(place, minlength=BINS)
        sums = np.bincount(place, weights=series.value[inside], minlength=BINS)
        for bin_index in np.flatnonzero(counts).tolist():
            t_ns = window.start_ns + (bin_index + 1) * window.length_ns // BINS
            value = float(sums[bin_index] / counts[bin_index])
            yield DeviceSample(t_ns, label, series.name, value, series.unit)


def _phase_metrics(trace: Trace, index: int, steps: Sequence[Step]) -> Iterator[dict[str, object]]:
    """Average each metric over the samples that fall into one phase's steps alone."""
    for phase in PHASES:
        spans = _alone(phase, steps)
        for series in trace.series:
            if series.device != index or not len(spans):
                continue
            inside = covered_ns(spans, series.t_ns, series.t_ns + 1) > 0
            if inside.any():
                yield figure(
                    series.name,
                    float(series.value[inside].mean()),
                    series.unit,
                    f"mean of {series.name} over {int(inside.sum())} samples in {phase} steps",
                    phase=phase,
                )


def _alone(phase: str, steps: Sequence[Step]) -> Union:
    spans = [(s.start_ns, s.end_ns) for s in steps if s.phase == phase and not s.warmup]
    starts = np.array([start for start, _ in spans], dtype=np.int64)
    return union(starts, np.array([end for _, end in spans], dtype=np.int64))
