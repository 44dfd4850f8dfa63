"""What a Kineto trace says beside its events: devices, ranks, versions, the wall clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stallscope.profiler.trace.timeline import TracedDevice

Header = Mapping[str, Any]

# What was recorded besides, and slows the host; each is 1 in the header where it was on.
_OPTIONS = ("with_stack", "record_shapes", "profile_memory", "with_flops", "with_modules")
# Before 2024 Kineto wrote the wall clock's microseconds themselves, without a base.
_MOST = 2**63  # JSON's numbers have no end; what is told here is far below
_EPOCH_LEAST_NS = 10**18  # September 2001


def devices_of(header: Header, ids: Sequence[object], maker: str) -> tuple[TracedDevice, ...]:
    """Describe the devices that have rows, in the order of `ids`, from deviceProperties."""
    listed = header.get("deviceProperties")
    properties = [p for p in listed if isinstance(p, dict)] if isinstance(listed, list) else []
    by_id = {p["id"]: p for p in properties if isinstance(p.get("id"), int | str)}
    # ROCm numbers rows by the machine's node, properties from 0: one of each is the same device.
    only = properties[0] if len(properties) == 1 and len(ids) == 1 else {}
    return tuple(_device(i, by_id.get(i, only), maker) for i in ids)


def _device(number: object, properties: Header, maker: str) -> TracedDevice:
    name = properties.get("name")
    facts = {"memory_bytes": "totalGlobalMem", "sm_count": "numSms"}
    found = {ours: _positive(properties.get(theirs)) for ours, theirs in facts.items()}
    return TracedDevice(
        f"{maker}:{number}",
        name if isinstance(name, str) and name else None,
        {ours: value for ours, value in found.items() if value is not None},
    )


def rank_of(header: Header) -> int | None:
    """Return the process's rank, where the trace is of a distributed run."""
    rank = _distributed(header).get("rank")
    return rank if isinstance(rank, int) and rank >= 0 else None


def unix_of(header: Header, first_ns: int | None) -> int | None:
    """Return the wall clock at the trace's time 0, nanoseconds; None where it is not said."""
    base_ns = header.get("baseTimeNanoseconds")
    if isinstance(base_ns, int) and 0 < base_ns < _MOST:
        return base_ns
    return 0 if first_ns is not None and first_ns >= _EPOCH_LEAST_NS else None


def tool_of(header: Header) -> str:
    """Name the profiler with the versions that the file states."""
    versions = []
    cuda, hip = header.get("cuda_runtime_version"), header.get("hip_runtime_version")
    if isinstance(cuda, int) and cuda > 0:
        versions.append(f"CUDA {cuda // 1000}.{cuda % 1000 // 10}")
    if isinstance(hip, int) and hip > 0:
        versions.append(f"HIP {hip // 10_000_000}.{hip // 100_000 % 100}")
    for key, name in (("cupti_version", "CUPTI"), ("roctracer_version", "roctracer")):
        if isinstance(header.get(key), int | float):
            versions.append(f"{name} {header[key]}")
    return "PyTorch profiler" + (f" ({', '.join(versions)})" if versions else "")


def facts_of(header: Header) -> dict[str, Any]:
    """Return what else the header says, by our names."""
    facts: dict[str, Any] = {name: True for name in _OPTIONS if header.get(name) == 1}
    world = _positive(_distributed(header).get("world_size"))
    if world is not None:
        facts["world_size"] = int(world)
    listed = header.get("deviceProperties")
    if isinstance(listed, list):
        facts["visible_devices"] = len(listed)
    return facts


def _distributed(header: Header) -> Header:
    found = header.get("distributedInfo")
    return found if isinstance(found, dict) else {}


def _positive(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MOST:
        return None
    return float(value)
