"""What an export says of the recording itself: by what, when, of which rank."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from stallscope.profiler.nsys.database import Database

_PRODUCT = "NVIDIA Nsight Systems"
# Set by torchrun, SLURM, Open MPI, MPICH and MVAPICH, in this order of precedence.
_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK")
_VARIABLE = re.compile(r"(?P<name>\w+)=\"?(?P<value>\d+)\"?$")
_FACTS = {"Hostname": "host", "NvDriverVersion": "driver", "CudaDriverVersion": "cuda_driver"}


@dataclass(frozen=True, slots=True)
class Session:
    """The recording. `window_ns` is on the trace's clock, whose 0 is `unix_ns`."""

    tool: str
    window_ns: tuple[int, int] | None = None
    unix_ns: int | None = None
    rank: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def read_session(database: Database) -> Session:
    """Read what is there; None is what the file does not say."""
    exported = dict(_pairs(database, "META_DATA_EXPORT")) or dict(
        _pairs(database, "EXPORT_META_DATA")
    )
    version = exported.get("EXPORT_PRODUCT_VERSION")
    begins = next(
        database.rows("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs", "systemClockNs")), None
    )
    unix_ns, system_ns = (_whole(value) for value in begins or (None, None))
    facts = {}
    if "EXPORT_SCHEMA_VERSION" in exported:
        facts["schema"] = exported["EXPORT_SCHEMA_VERSION"]
    for name, value in _pairs(database, "TARGET_INFO_SYSTEM_ENV"):
        if name in _FACTS:
            facts[_FACTS[name]] = value
    return Session(
        _PRODUCT if version is None else f"{_PRODUCT} {version}",
        _window(database, system_ns),
        unix_ns,
        _rank(database),
        facts,
    )


def _pairs(database: Database, table: str) -> Iterator[tuple[str, str]]:
    for name, value in database.rows(table, ("name", "value")):
        if name is not None and value is not None:
            yield str(name), str(value)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _window(database: Database, system_ns: int | None) -> tuple[int, int] | None:
    """Return when recording was on.

    Events count from when recording began: a file of 2024.6 says "Profiling has started." at 0,
    and stopped at the window's length; 2022.4.2 with --delay does so too. The window itself counts
    from elsewhere: until 2024 from the session's start, which may be long before; later files say
    at which time of its clock events count 0.
    """
    row = next(database.rows("ANALYSIS_DETAILS", ("startTime", "stopTime")), None)
    start, stop = (_whole(value) for value in row or (None, None))
    if start is None or stop is None or stop <= start:
        return None
    zero = system_ns if system_ns is not None and start >= system_ns else start
    return start - zero, stop - zero


def _rank(database: Database) -> int | None:
    """Return the rank that the launching environment names, where it was recorded."""
    values: dict[str, int] = {}
    for text in _environment(database):
        match = _VARIABLE.match(text)
        if match is not None and match["name"] in _RANKS:
            values.setdefault(match["name"], int(match["value"]))
    return next((values[name] for name in _RANKS if name in values), None)


def _environment(database: Database) -> Iterator[str]:
    for name, value in _pairs(database, "META_DATA_CAPTURE"):
        if name.endswith(":ENVIRONMENT_VARIABLE"):
            yield value
    for name, value in _pairs(database, "TARGET_INFO_SYSTEM_ENV"):
        if name == "DeviceEnvironment":
            yield from value.split(";")
        elif name in _RANKS:
            yield f"{name}={value}"
