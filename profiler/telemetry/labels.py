"""What devices of a file are called, and which of its rows are of the same one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from stallscope.profiler.telemetry.rows import Identity, Row

Key = tuple[str, str]


def gpu_key(device: Identity) -> Key:
    """Return what tells one GPU from another: host, and the best of the names that it has."""
    best = device.index or device.uuid or device.bus_id or device.name
    return device.host or "", best or ""


@dataclass(slots=True)
class Gpu:
    """A GPU of the file; `own` names the counters that its MIG instances have themselves."""

    about: Identity
    has_instances: bool = False
    is_partitioned: bool = False  # in MIG mode, whether or not instances are listed
    own: set[str] = field(default_factory=set)


def gpus_of(rows: Sequence[Row]) -> dict[Key, Gpu]:
    """Gather what all rows together say of each GPU, in the order of the file."""
    gpus: dict[Key, Gpu] = {}
    seen: set[Identity] = set()
    for row in rows:
        if row.device in seen and row.device.instance is None:
            continue
        seen.add(row.device)
        key = gpu_key(row.device)
        gpu = gpus.setdefault(key, Gpu(replace(row.device, instance=None, process=None)))
        about, more = gpu.about, row.device
        gpu.about = replace(
            about,
            name=about.name or more.name,
            uuid=about.uuid or more.uuid,
            bus_id=about.bus_id or more.bus_id,
        )
        gpu.is_partitioned = gpu.is_partitioned or more.is_partitioned
        if more.instance is not None:
            gpu.has_instances = True
            gpu.own.update(row.values)
    return gpus


def label(device: Identity, gpus: Mapping[Key, Gpu]) -> str:
    """Name a GPU, an instance of it, or a process on it."""
    gpu = gpus[gpu_key(device)]
    name = _gpu_label(gpu.about, hosts={host for host, _ in gpus})
    if device.process is not None:
        return f"{name} {device.process}"
    if device.instance is not None:
        return f"{name} MIG {device.instance}"
    return f"{name} (whole GPU)" if gpu.has_instances else name


def _gpu_label(about: Identity, *, hosts: set[str]) -> str:
    which = about.index or about.bus_id or about.uuid
    parts = ["GPU", which, about.name] if which is not None else [about.name or "GPU"]
    if len(hosts) > 1 and about.host:
        parts.insert(0, f"{about.host}:")
    return " ".join(part for part in parts if part)
