"""Whether anything ran at all, from device counters alone: telemetry knows no requests."""

from __future__ import annotations

from stallscope.analyzers.load.span import Span
from stallscope.analyzers.quantities import used_samples
from stallscope.analyzers.used_devices import NEVER_BUSY, busy_by_device, unused_devices
from stallscope.profiler.capture import SAMPLE_WINDOW_NS, Capture

_LEAST_NS = 30 * SAMPLE_WINDOW_NS
_BY_KERNEL = ("ncu_", "nsys_", "trace_")  # what profilers of kernels count
_GPU_IDLE = 0x1  # nvmlClocksEventReasonGpuIdle: nothing runs, and clocks drop


def is_telemetry_only(capture: Capture) -> bool:
    """Tell whether nothing but devices was watched, by their own counters over time."""
    rows = (capture.steps, capture.requests, capture.engine_samples, capture.kernels)
    if any(rows) or not capture.device_samples or "benchmark" in capture.meta:
        return False
    return not any(
        s.name.startswith(_BY_KERNEL) or s.device == "host" for s in capture.device_samples
    )


def sampled_span(capture: Capture) -> Span | None:
    """Return the stretch in which devices alone were watched; None if short, or of other captures.

    A sample speaks of up to a second before it, so that windows must last many.
    """
    if not is_telemetry_only(capture):
        return None
    times = [s.t_ns for s in capture.device_samples]
    span = Span(min(times), max(times))
    return span if span.duration_ns >= _LEAST_NS else None


def observe_idle(capture: Capture, span: Span) -> tuple[float, str] | None:
    """Return the share of samples in which the busiest device did nothing, and what said so.

    None where no counter tells. A span of no length stands for the whole file.
    """
    unused = unused_devices(capture)
    shares = [
        _share([s.value <= NEVER_BUSY for s in samples if _lies_in(span, s.t_ns)])
        for device, samples in busy_by_device(capture).items()
        if device not in unused
    ]
    known = [share for share in shares if share is not None]
    source = "samples in which the busiest GPU was busy 5 % or less"
    if not known:
        known = _idle_flags(capture, span)
        source = "samples in which the driver calls the GPU idle"
    if not known:
        return None
    return min(known), source


def _idle_flags(capture: Capture, span: Span) -> list[float]:
    flags: dict[str, list[bool]] = {}
    for sample in used_samples(capture, "clock_event_reasons"):
        if _lies_in(span, sample.t_ns):
            flags.setdefault(sample.device, []).append(bool(int(sample.value) & _GPU_IDLE))
    return [sum(seen) / len(seen) for seen in flags.values()]


def _share(seen: list[bool]) -> float | None:
    return sum(seen) / len(seen) if seen else None


def _lies_in(span: Span, t_ns: int) -> bool:
    return not span.duration_ns or span.start_ns <= t_ns <= span.end_ns
