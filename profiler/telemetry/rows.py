"""What any of the formats gives: one device at one moment, with its counters in our units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from stallscope.profiler.nvml import pcie, readings
from stallscope.profiler.telemetry.cells import MOST_LONG, in_unit

# Counters that only DCGM's profiling fields give; docs/metrics.md lists them.
DCGM_UNITS: Mapping[str, str] = {
    "dcgm_gr_engine_active": "fraction",
    "dcgm_sm_active": "fraction",
    "dcgm_sm_occupancy": "fraction",
    "dcgm_tensor_active": "fraction",
    "dcgm_fp64_active": "fraction",
    "dcgm_fp32_active": "fraction",
    "dcgm_fp16_active": "fraction",
    "dcgm_pipe_active": "fraction",
    "dcgm_dram_active": "fraction",
}
UNITS: Mapping[str, str] = {
    **readings.UNITS,
    **pcie.UNITS,
    **DCGM_UNITS,
    "process_sm_util": "fraction",
}


@dataclass(frozen=True, slots=True)
class Identity:
    """What a file says of the device that a row is about: any of these.

    `instance` names a MIG instance of the GPU, `process` a process on it; `is_partitioned` says
    that the GPU is in MIG mode, `driver_model` which of its drivers Windows runs it with.
    """

    index: str | None = None
    name: str | None = None
    uuid: str | None = None
    bus_id: str | None = None
    host: str | None = None
    instance: str | None = None
    process: str | None = None
    is_partitioned: bool = False
    driver_model: str | None = None


identity = lru_cache(maxsize=4096)(Identity)  # the same few devices in every row: one object each


class Row(NamedTuple):
    """One device's counters. `t_ns` counts from 1970, None where the file has no time.

    `missing` maps a counter that was asked for to the word that stands in its place.
    """

    t_ns: int | None
    device: Identity
    values: Mapping[str, float] = MappingProxyType({})
    missing: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Telemetry:
    """A file: `tool` wrote it, `clock` says what its times are; `notes` are plain sentences.

    `missing` holds the first word that stood in place of each counter's value, of all rows.
    """

    tool: str
    rows: tuple[Row, ...]
    clock: str = "local time"
    driver: str | None = None
    notes: tuple[str, ...] = ()
    is_cut: bool = False
    missing: Mapping[str, str] = field(default_factory=dict)
    jumps_back: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """One of our counters: where a format has it, best first, and the unit it has where unsaid."""

    name: str
    sources: tuple[str, ...]
    stated: str


def counted(
    cells: Mapping[str, str], counters: tuple[Counter, ...]
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the counters that cells hold, and those asked for in vain with what stands there."""
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    for name, unit, stated, sources in _present(tuple(cells), counters):
        for source in sources:
            text = cells[source]
            value = in_unit(text, unit, stated)
            if value is not None:
                values[name] = value
                break
            missing.setdefault(name, " ".join(text[:MOST_LONG].split()))
    with_total(values)
    if missing:
        missing = {name: word for name, word in missing.items() if name not in values}
    return values, missing


@lru_cache(maxsize=256)  # a file has the same columns in every row
def _present(
    names: tuple[str, ...], counters: tuple[Counter, ...]
) -> tuple[tuple[str, str, str, tuple[str, ...]], ...]:
    """Return the counters that have a source among these: name, units, and those that are there."""
    found = ((c, tuple(source for source in c.sources if source in names)) for c in counters)
    return tuple((c.name, UNITS[c.name], c.stated, sources) for c, sources in found if sources)


def with_total(values: dict[str, float]) -> None:
    """Add the total where its parts are there: used, free and what the driver reserves.

    On drivers before 510 what is reserved is counted as used, and no third part is reported.
    """
    if "memory_total_bytes" in values or "memory_free_bytes" not in values:
        return
    if "memory_used_bytes" in values:
        parts = ("memory_used_bytes", "memory_free_bytes", "memory_reserved_bytes")
        values["memory_total_bytes"] = sum(values.get(name, 0.0) for name in parts)


def left_out(wrong: int) -> tuple[str, ...]:
    """Say how many lines did not fit under their header."""
    if not wrong:
        return ()
    lines = "line has" if wrong == 1 else "lines have"
    left = "was" if wrong == 1 else "were"
    return (f"{wrong:,} {lines} more or fewer cells than the header and {left} left out.",)
