"""A capture from rows of GPU telemetry."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from stallscope.profiler.capture import Capture, DeviceSample, Event, Source
from stallscope.profiler.known_devices import known_device
from stallscope.profiler.nvml.clock_events import MASK, SLOWED, ClockEvents
from stallscope.profiler.spec import DeviceSpec, Subject
from stallscope.profiler.telemetry.labels import Gpu, Key, gpu_key, gpus_of, label
from stallscope.profiler.telemetry.rows import UNITS, Identity, Row, Telemetry
from stallscope.profiler.wall_clock import WallClock

_CUT = "The file breaks off in the middle of a line; what stands before it was read."
_DCGM = "sample it with DCGM: dcgmi dmon -e 1001,1002,1004,1005 (of MIG instances too)"
_SHARED = (
    "a GPU without memory of its own (GB10, Jetson) reports none: what is left is MemAvailable of "
    "/proc/meminfo, neither its MemTotal nor its MemFree"
)
_HOW: Mapping[str, str] = {
    "nvml_gpu_util": _DCGM,
    "nvml_memory_util": _DCGM,
    **dict.fromkeys(("memory_used_bytes", "memory_free_bytes", "memory_total_bytes"), _SHARED),
}
_ELSE = "see what this GPU and driver report: nvidia-smi -q"
_NO_TIME = "The samples have no time: only their means and extremes say something."


def capture_of(found: Telemetry, path: str) -> Capture:
    """Put rows into a capture, with times from the first one on."""
    gpus = gpus_of(found.rows)
    samples = sorted(_samples(found.rows, gpus), key=attrgetter("t_ns"))
    begin_ns = _begin_ns(found.rows)
    throttled = list(_throttled(samples))
    is_timed = begin_ns is not None
    return Capture(
        subject=Subject(device=_spec(gpus, samples)),
        device_samples=tuple(samples),
        events=(*_notes(found, samples, is_timed=is_timed), *_missing(found), *throttled),
        sources=(Source(0, found.tool, path, found.clock if is_timed else "none", 0, 0),),
        meta={
            "ended": {},
            "clock": _clock(found, begin_ns),
            "devices": _facts(found.rows, gpus),
            "telemetry": {
                "tool": found.tool,
                "driver": found.driver,
                "driver_models": sorted({r.device.driver_model or "" for r in found.rows} - {""}),
            },
        },
    )


def _begin_ns(rows: Sequence[Row]) -> int | None:
    return min((row.t_ns for row in rows if row.t_ns is not None), default=None)


def _clock(found: Telemetry, begin_ns: int | None) -> dict[str, Any] | None:
    if begin_ns is None:
        return None
    return WallClock(begin_ns, has_zone=found.clock == "unix time").meta()


def _samples(rows: Sequence[Row], gpus: Mapping[Key, Gpu]) -> Iterator[DeviceSample]:
    """Yield samples in the file's order; a row without a time has that of the row before it.

    What MIG instances report themselves is not repeated for their GPU: it would count twice.
    """
    begin_ns = _begin_ns(rows) or 0
    t_ns = 0
    labels = _labels(rows, gpus)
    told = {device: (name, _told_by_instances(device, gpus)) for device, name in labels.items()}
    for row in rows:
        t_ns = t_ns if row.t_ns is None else row.t_ns - begin_ns
        device, own = told[row.device]
        for name, value in row.values.items():
            if name not in own:
                yield DeviceSample(t_ns, device, name, value, UNITS[name])


def _told_by_instances(device: Identity, gpus: Mapping[Key, Gpu]) -> Collection[str]:
    is_whole = device.instance is None and device.process is None
    return gpus[gpu_key(device)].own if is_whole else ()


def _labels(rows: Sequence[Row], gpus: Mapping[Key, Gpu]) -> dict[Identity, str]:
    """Name each device once, in the order of the file."""
    return {device: label(device, gpus) for device in dict.fromkeys(row.device for row in rows)}


def _spec(gpus: Mapping[Key, Gpu], samples: Sequence[DeviceSample]) -> DeviceSpec | None:
    """Return the figures of the GPUs if all are of one known kind, and none is partitioned."""
    names = {gpu.about.name for gpu in gpus.values()}
    name = names.pop() if len(names) == 1 else None
    if name is None or any(g.has_instances or g.is_partitioned for g in gpus.values()):
        return None
    totals = {int(s.value) for s in samples if s.name == "memory_total_bytes"}
    return known_device(name, totals.pop() if len(totals) == 1 else None)


def _facts(rows: Sequence[Row], gpus: Mapping[Key, Gpu]) -> dict[str, dict[str, Any]]:
    facts = {}
    for device, name in _labels(rows, gpus).items():
        about = gpus[gpu_key(device)].about
        if device.process is None:
            facts[name] = {
                "name": about.name,
                "uuid": about.uuid,
                "pci_bus_id": about.bus_id,
            }
    return facts


def _throttled(samples: Sequence[DeviceSample]) -> Iterator[Event]:
    followed: dict[str, ClockEvents] = {}
    for sample in samples:
        if sample.name == MASK:
            yield from followed.setdefault(sample.device, ClockEvents()).of(sample)


def _notes(found: Telemetry, samples: Sequence[DeviceSample], *, is_timed: bool) -> Iterator[Event]:
    sentences = [*found.notes, *_slowed(samples)]
    if not is_timed and len(found.rows) > 1:
        sentences.append(_NO_TIME)
    if found.jumps_back:
        sentences.append("The clock of the file jumps back; its samples were put in order of time.")
    if found.is_cut:
        sentences.append(_CUT)
    for sentence in sentences:
        yield Event(0, "check", None, {"sentence": sentence})


def _slowed(samples: Sequence[DeviceSample]) -> Iterator[str]:
    """Say in how many samples each GPU slowed its clocks itself, and why."""
    masks: dict[str, list[int]] = {}
    for sample in samples:
        if sample.name == MASK:
            masks.setdefault(sample.device, []).append(int(sample.value))
    for device, seen in masks.items():
        slowed = [mask for mask in seen if any(mask & bit for bit in SLOWED)]
        if slowed:
            reasons = [text for bit, text in SLOWED.items() if any(m & bit for m in slowed)]
            yield (
                f"{device} slowed its clocks in {len(slowed):,} of {len(seen):,} samples: "
                f"{', '.join(reasons)}."
            )


def _missing(found: Telemetry) -> Iterator[Event]:
    """Say what was asked for and never had a value on any device."""
    seen = {name for row in found.rows for name in row.values}
    for name, word in found.missing.items():
        if name not in seen:
            reason = f'{found.tool} printed "{word}"' if word else f"{found.tool} printed nothing"
            data = {"what": name, "reason": reason, "how": _HOW.get(name, _ELSE)}
            yield Event(0, "not_observable", None, data)
