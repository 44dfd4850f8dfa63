"""Figures that a reader computed from a trace's timeline, as measures of the run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from stallscope.analyzers.event_fields import number, text, whole_events
from stallscope.profiler.capture import Capture, DeviceSample, Event
from stallscope.profiler.evidence import Measure

# name → (unit, meaning); the causes of idle time are those of profiler.trace.gap_causes.
TRACE_MEASURES: dict[str, tuple[str, str]] = {
    "trace_window": ("s", "time that the trace's figures are of"),
    "kernel_rate": ("1/s", "kernels a second of the traced window, on each device"),
    "kernel_length_mean": ("s", "mean kernel duration"),
    "kernels_in_graphs": ("fraction", "of kernels, launched by a CUDA graph"),
    "idle_in_queued": ("fraction", "of the traced window, idle with work launched already"),
    "idle_in_launch": ("fraction", "of the traced window, idle while the host launched"),
    "idle_in_copy": ("fraction", "of the traced window, idle while the host asked for copies"),
    "idle_in_alloc": ("fraction", "of the traced window, idle while the host asked for memory"),
    "idle_in_capture": ("fraction", "of the traced window, idle while a CUDA graph was captured"),
    "idle_in_sync": ("fraction", "of the traced window, idle while the host waited for the device"),
    "idle_in_wait": ("fraction", "of the traced window, idle while the host waited in the system"),
    "idle_in_operator": ("fraction", "of the traced window, idle inside a framework's operators"),
    "idle_in_unseen": ("fraction", "of the traced window, idle with nothing traced on the host"),
    "idle_within_schedule": ("fraction", "of the traced window, idle while the engine scheduled"),
    "idle_within_prepare": ("fraction", "of the traced window, idle while inputs were prepared"),
    "idle_within_forward": ("fraction", "of the traced window, idle inside the forward call"),
    "idle_within_draft": ("fraction", "of the traced window, idle while tokens were drafted"),
    "idle_within_sample": ("fraction", "of the traced window, idle while tokens were picked"),
    "idle_within_bookkeep": ("fraction", "of the traced window, idle while books were kept"),
    "idle_within_output": ("fraction", "of the traced window, idle while output was handed on"),
    "host_to_device_bytes": ("bytes", "copied from host to device in the traced window"),
    "pageable_share": ("fraction", "of bytes copied to the device, from pageable memory"),
}
_ADDED_UP = ("host_to_device_bytes",)


def trace_measures(capture: Capture) -> tuple[Measure, ...]:
    """Return each figure of the whole trace: the devices' mean, or their sum for bytes."""
    values: dict[str, list[float]] = {}
    sources: dict[str, str] = {}
    for event, name, value in _figures(capture):
        if name in TRACE_MEASURES and "phase" not in event.data:
            values.setdefault(name, []).append(value)
            sources[name] = text(event, "source") or "the trace"
    return tuple(
        Measure(
            name,
            math.fsum(values[name]) if name in _ADDED_UP else statistics.fmean(values[name]),
            TRACE_MEASURES[name][0],
            "measured",
            sources[name] + _over_devices(name, len(values[name])),
        )
        for name in TRACE_MEASURES
        if name in values
    )


def _over_devices(name: str, count: int) -> str:
    if count < 2:
        return ""
    return f", {'sum' if name in _ADDED_UP else 'mean'} of {count} devices"


def figures_by_device(capture: Capture, name: str) -> dict[str, float]:
    """Return one figure of the whole window for each device that has it."""
    return {
        text(event, "device") or "": value
        for event, found, value in _figures(capture)
        if found == name and "phase" not in event.data
    }


def trace_figures(capture: Capture, name: str, phase: str | None = None) -> tuple[float, ...]:
    """Return one figure of each device, of the whole window or of one phase's steps."""
    return tuple(
        value
        for event, found, value in _figures(capture)
        if found == name and event.data.get("phase") == phase
    )


def phase_samples(capture: Capture, phase: str) -> tuple[DeviceSample, ...]:
    """Return device metrics that a reader averaged over one phase's steps, a sample each."""
    return tuple(
        DeviceSample(event.t_ns, text(event, "device") or "", name, value, "fraction")
        for event, name, value in _figures(capture)
        if event.data.get("phase") == phase
    )


def _figures(capture: Capture) -> Iterator[tuple[Event, str, float]]:
    for event in whole_events(capture, "trace_figure"):
        value = number(event, "value")
        if value is not None:
            yield event, event.data["name"], value
