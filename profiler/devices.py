"""Devices by name from the table, each figure with its source, or from the user's own file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from stallscope.errors import InputError
from stallscope.profiler.checked_json import Fields, read_object
from stallscope.profiler.device_products import read_calibration, read_products
from stallscope.profiler.nearest import did_you_mean
from stallscope.profiler.spec import DeviceSpec

# What a peak can be given for; tf32 is fp32 storage on tensor cores.
PEAK_DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp8", "int8", "int4", "fp4")
# Less is no device's: such figures were written in GB, GB/s or TFLOP/s.
_LEAST_FLOPS, _LEAST_BYTES_PER_S, _LEAST_BYTES = 1e9, 1e7, 1e6
_LEAST_LINK_BYTES_PER_S = 1e6
_FIELDS = (
    *("name", "peak_flops", "memory_bytes", "memory_bytes_per_s", "kind", "is_cpu"),
    *("link", "link_bytes_per_s", "power_w", "host_link_bytes_per_s", "sources"),
    *("products", "launch_s", "calibration"),
)


def device_names() -> tuple[str, ...]:
    """Return the names in the device table."""
    return tuple(_table())


def load_device(name: str) -> DeviceSpec:
    """Return a device of the table by name, without case."""
    try:
        return _table()[name.strip().lower()]
    except KeyError:
        raise InputError(_unknown_device(name)) from None


def load_device_file(path: str | Path) -> DeviceSpec:
    """Return the device that a JSON file describes, in the shape of one entry of the table."""
    return _device(read_object(Path(path)))


@cache
def _table() -> Mapping[str, DeviceSpec]:
    file = resources.files("stallscope.profiler.data") / "devices.json"
    entries = json.loads(file.read_text("utf-8"))
    devices = [_device(Fields("device table", entry)) for entry in entries]
    return {device.name: device for device in devices}


def _device(entry: Fields) -> DeviceSpec:
    for field in entry:
        if field not in _FIELDS:
            raise entry.error(field, f"is not a field of a device; fields: {', '.join(_FIELDS)}")
    name = entry.text("name")
    if not name:
        raise entry.error("name", "is missing; add it")
    return DeviceSpec(
        name=name,
        peak_flops=_peaks(entry),
        memory_bytes=_memory(entry),
        memory_bytes_per_s=_large(entry, "memory_bytes_per_s", _LEAST_BYTES_PER_S, "bytes/s"),
        kind=_kind(entry),
        is_cpu=entry.flag("is_cpu"),
        link=entry.text("link"),
        link_bytes_per_s=_link(entry, "link_bytes_per_s"),
        power_w=_optional(entry, "power_w"),
        host_link_bytes_per_s=_link(entry, "host_link_bytes_per_s"),
        sources=_sources(entry),
        products=read_products(entry),
        launch_s=_optional(entry, "launch_s"),
        calibration=read_calibration(entry),
    )


def _peaks(entry: Fields) -> Mapping[str, float]:
    peaks = entry.inner("peak_flops")
    if peaks is None:
        raise entry.error("peak_flops", "is missing; add it, FLOP/s by dtype")
    for dtype in peaks:
        if dtype not in PEAK_DTYPES:
            raise peaks.error(dtype, f"is not a dtype known here; known: {', '.join(PEAK_DTYPES)}")
    return {dtype: _large(peaks, dtype, _LEAST_FLOPS, "FLOP/s") for dtype in peaks}


def _memory(entry: Fields) -> int | None:
    if not entry.has("memory_bytes"):
        return None
    size = entry.size("memory_bytes")
    _large(entry, "memory_bytes", _LEAST_BYTES, "bytes")
    return size


def _large(entry: Fields, name: str, least: float, unit: str) -> float:
    """Return a figure that no device has below `least`; less is one in a larger unit."""
    value = entry.positive(name)
    if value < least:
        raise entry.error(
            name, f"is in {unit}: {value:g} is less than any device has; write it out, as 1.5e12"
        )
    return value


def _kind(entry: Fields) -> Literal["datasheet", "achievable"]:
    match entry.text("kind"):
        case None | "datasheet":
            return "datasheet"
        case "achievable":
            return "achievable"
        case other:
            raise entry.error("kind", f'must be "datasheet" or "achievable", not "{other}"')


def _optional(entry: Fields, name: str) -> float | None:
    return entry.positive(name) if entry.has(name) else None


def _link(entry: Fields, name: str) -> float | None:
    return _large(entry, name, _LEAST_LINK_BYTES_PER_S, "bytes/s") if entry.has(name) else None


def _sources(entry: Fields) -> Mapping[str, str]:
    sources = entry.inner("sources")
    if sources is None:
        return {}
    return {name: sources.text(name) or "" for name in sources}


def _unknown_device(name: str) -> str:
    hint = did_you_mean(name, device_names())
    return f"no device {name!r} in the table; {hint} Another device can be described in a JSON file"
