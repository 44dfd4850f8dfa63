"""Changes to a capture whose effect on the verdict is known beforehand."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Collection, Sequence
from typing import Any

from stallscope.profiler.capture import Capture, DeviceSample, EngineSample, Event
from stallscope.profiler.spec import DeviceSpec


def slowed(capture: Capture, k: float) -> Capture:
    """Let everything take k times as long on a device with 1/k of every rate."""

    def ns(t: int | None) -> int | None:
        return None if t is None else round(t * k)

    def at(t: int) -> int:
        return round(t * k)

    device, engine = capture.subject.device, capture.engine_samples
    rate = capture.subject.rate_per_s
    return dataclasses.replace(
        capture,
        subject=dataclasses.replace(
            capture.subject,
            device=None if device is None else with_rates(device, 1 / k),
            rate_per_s=None if rate is None else rate / k,
        ),
        steps=tuple(
            s._replace(
                start_ns=at(s.start_ns),
                end_ns=at(s.end_ns),
                device_ns=ns(s.device_ns),
                host_ns=ns(s.host_ns),
            )
            for s in capture.steps
        ),
        requests=tuple(
            r._replace(
                arrival_ns=at(r.arrival_ns),
                admitted_ns=ns(r.admitted_ns),
                first_token_ns=ns(r.first_token_ns),
                end_ns=ns(r.end_ns),
                preempted_ns=ns(r.preempted_ns),
            )
            for r in capture.requests
        ),
        tokens=tuple(t._replace(t_ns=at(t.t_ns)) for t in capture.tokens),
        device_samples=tuple(s._replace(t_ns=at(s.t_ns)) for s in capture.device_samples),
        engine_samples=tuple(_of_time(s._replace(t_ns=at(s.t_ns)), k) for s in engine),
        events=tuple(_probed(e._replace(t_ns=at(e.t_ns)), k) for e in capture.events),
        kernels=tuple(
            row._replace(busy_ns=at(row.busy_ns), exposed_ns=ns(row.exposed_ns))
            for row in capture.kernels
        ),
    )


def _of_time(sample: EngineSample, k: float) -> EngineSample:
    """Scale what an engine counts in seconds."""
    is_seconds = sample.name.endswith(("_s_sum", "_s_total"))
    return sample._replace(value=sample.value * k) if is_seconds else sample


def _probed(event: Event, k: float) -> Event:
    """Scale what a probe or a trace tells: seconds, or a rate in some unit per second."""
    data = dict(event.data)
    if "time_s" in data:
        data["time_s"] *= k
    unit = str(data.get("unit", ""))
    if unit == "s":
        data["value"] *= k
    elif unit.endswith("/s"):
        data["value"] /= k
    return event._replace(data=data)


def with_rates(device: DeviceSpec, factor: float) -> DeviceSpec:
    """Multiply every rate of a device."""

    def rate(value: float | None) -> float | None:
        return None if value is None else value * factor

    return dataclasses.replace(
        device,
        peak_flops={dtype: peak * factor for dtype, peak in device.peak_flops.items()},
        memory_bytes_per_s=device.memory_bytes_per_s * factor,
        link_bytes_per_s=rate(device.link_bytes_per_s),
        host_link_bytes_per_s=rate(device.host_link_bytes_per_s),
    )


def with_subject(capture: Capture, **facts: Any) -> Capture:
    """Lay facts over the subject."""
    return dataclasses.replace(capture, subject=dataclasses.replace(capture.subject, **facts))


# What a GPU says of itself that nobody uses: clocks and power at rest, a desktop in its memory.
AT_REST = {
    "nvml_gpu_util": (0.0, "fraction"),
    "sm_clock_hz": (0.21e9, "Hz"),
    "sm_clock_max_hz": (1.98e9, "Hz"),
    "memory_clock_hz": (0.4e9, "Hz"),
    "memory_clock_max_hz": (2.6e9, "Hz"),
    "memory_used_bytes": (0.3e9, "bytes"),
    "memory_total_bytes": (80e9, "bytes"),
    "power_mw": (70e3, "mW"),
    "power_limit_mw": (700e3, "mW"),
    "gpm_sm_util": (0.0, "fraction"),
    "gpm_dram_util": (0.0, "fraction"),
    "gpm_tensor_util": (0.0, "fraction"),
}


def with_idle_gpu(capture: Capture) -> Capture:
    """Add a GPU at rest, sampled whenever something else was."""
    times = {s.t_ns for s in (*capture.device_samples, *capture.engine_samples)}
    times |= {s.start_ns for s in capture.steps}
    rows = tuple(
        DeviceSample(t, "GPU-of-somebody-else", name, value, unit)
        for t in sorted(times)
        for name, (value, unit) in AT_REST.items()
    )
    both = sorted((*capture.device_samples, *rows), key=lambda s: s.t_ns)
    return dataclasses.replace(capture, device_samples=tuple(both))


def without_samples(capture: Capture, names: Collection[str]) -> Capture:
    """Leave out device counters and engine gauges by name."""
    return dataclasses.replace(
        capture,
        device_samples=tuple(s for s in capture.device_samples if s.name not in names),
        engine_samples=tuple(s for s in capture.engine_samples if s.name not in names),
    )


def without_fields(capture: Capture, *names: str) -> Capture:
    """Leave columns of steps unsaid."""
    unsaid: dict[str, Any] = dict.fromkeys(names)
    return dataclasses.replace(capture, steps=tuple(s._replace(**unsaid) for s in capture.steps))


def shuffled(capture: Capture, windows: int, rng: random.Random) -> Capture:
    """Give each device's readings of one moment the time of another moment in the same window."""
    rows = capture.device_samples
    if not rows:
        return capture
    first = min(s.t_ns for s in rows)
    length = (max(s.t_ns for s in rows) - first) // windows + 1
    moved: dict[tuple[str, int], int] = {}
    for device in sorted({s.device for s in rows}):
        times = sorted({s.t_ns for s in rows if s.device == device})
        for window in range(windows):
            inside = [t for t in times if (t - first) // length == window]
            others = rng.sample(inside, len(inside))
            moved |= {(device, t): other for t, other in zip(inside, others, strict=True)}
    found = sorted((s._replace(t_ns=moved[s.device, s.t_ns]) for s in rows), key=lambda s: s.t_ns)
    return dataclasses.replace(capture, device_samples=tuple(found))


def reversed_within(capture: Capture, start: float, end: float) -> Capture:
    """Turn the order of the engine's samples round between two fractions of their time."""
    rows = capture.engine_samples
    if not rows:
        return capture
    times = sorted({s.t_ns for s in rows})
    inside = times[int(start * len(times)) : max(1, round(end * len(times)))]
    other = dict(zip(inside, reversed(inside), strict=True))
    found = sorted((s._replace(t_ns=other.get(s.t_ns, s.t_ns)) for s in rows), key=_at)
    return dataclasses.replace(capture, engine_samples=tuple(found))


def _at(sample: EngineSample) -> int:
    return sample.t_ns


def sample_names(capture: Capture) -> Sequence[str]:
    """Name what was sampled."""
    return sorted({s.name for s in (*capture.device_samples, *capture.engine_samples)})


Change = Callable[[Capture], Capture]
