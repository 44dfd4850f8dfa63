"""Sample the host: this process's memory and CPU, the machine's memory and pressure.

The process alone is counted, without its children: a Recorder lives inside the engine's own
process, and walking /proc for children costs milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from stallscope.profiler.capture import DeviceSample
from stallscope.profiler.cgroup import MemoryLimit, tightest_memory_limit
from stallscope.profiler.evidence import NotObservable

HOST = "host"


@dataclass(frozen=True, slots=True)
class HostField:
    """One counter: its name, its unit, how to read it, and what to do where that fails."""

    name: str
    unit: str
    read: Callable[[], float]
    how: str = "install psutil for this system"


class HostSampler:
    """Reads every field of the host that answers."""

    name = "host"

    def __init__(self, fields: tuple[HostField, ...] | None = None) -> None:
        self._fields = host_fields() if fields is None else fields

    def probe(self) -> tuple[NotObservable, ...]:
        """Read each field once; drop and return those that fail."""
        answering, missing = [], []
        for field in self._fields:
            try:
                field.read()
                answering.append(field)
            except (OSError, ValueError, psutil.Error) as error:
                missing.append(NotObservable(field.name, str(error), field.how))
        self._fields = tuple(answering)
        return tuple(missing)

    def sample(self, t_ns: int) -> Iterator[DeviceSample]:
        """Read the fields that answered the probe."""
        for field in self._fields:
            yield DeviceSample(t_ns, HOST, field.name, float(field.read()), field.unit)


def host_fields(pressure: Path = Path("/proc/pressure")) -> tuple[HostField, ...]:
    """Return the host's counters; `pressure` is where Linux keeps its pressure stall figures."""
    process = psutil.Process()
    limit = tightest_memory_limit()
    return (
        HostField("host_rss_bytes", "bytes", lambda: float(process.memory_info().rss)),
        HostField("host_cpu_cores", "cores", CpuCores()),
        HostField("host_other_cpu_cores", "cores", OtherCpuCores()),
        HostField("host_memory_total_bytes", "bytes", lambda: _total_bytes(limit)),
        HostField("host_memory_available_bytes", "bytes", lambda: _available_bytes(limit)),
        *(_pressure_field(pressure / resource) for resource in ("cpu", "memory", "io")),
    )


class CpuCores:
    """Cores that this process kept busy since the last reading: 1.0 is one core all the time."""

    def __init__(self) -> None:
        self._wall_ns = time.perf_counter_ns()
        self._cpu_ns = time.process_time_ns()

    def __call__(self) -> float:
        wall_ns, cpu_ns = time.perf_counter_ns(), time.process_time_ns()
        busy = (cpu_ns - self._cpu_ns) / max(1, wall_ns - self._wall_ns)
        self._wall_ns, self._cpu_ns = wall_ns, cpu_ns
        return busy


class OtherCpuCores:
    """Cores that everything but this process kept busy since the last reading.

    An engine's own worker processes count among the others.
    Time that the hypervisor gave to another machine ("steal") is somebody else's too.
    """

    def __init__(self) -> None:
        self._wall_ns, self._other_s = time.perf_counter_ns(), _other_cpu_s()

    def __call__(self) -> float:
        wall_ns, other_s = time.perf_counter_ns(), _other_cpu_s()
        busy = (other_s - self._other_s) / max(1e-9, (wall_ns - self._wall_ns) / 1e9)
        self._wall_ns, self._other_s = wall_ns, other_s
        return max(0.0, busy)  # the system's clock ticks are coarser than the process's own


def _other_cpu_s() -> float:
    times = psutil.cpu_times()
    # Linux counts a guest's time in user time as well.
    idle = times.idle + getattr(times, "iowait", 0.0)
    guest = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return float(sum(times) - idle - guest) - time.process_time_ns() / 1e9


def _total_bytes(limit: MemoryLimit | None) -> float:
    total: int = psutil.virtual_memory().total
    return total if limit is None else min(total, limit.limit_bytes)


def _available_bytes(limit: MemoryLimit | None) -> float:
    available: int = psutil.virtual_memory().available
    return available if limit is None else min(available, limit.available_bytes())


def _pressure_field(file: Path) -> HostField:
    return HostField(
        f"psi_{file.name}_some",
        "fraction",
        lambda: read_pressure(file),
        "run on Linux 4.20 or later with pressure stall information (boot with psi=1)",
    )


def read_pressure(file: Path) -> float:
    """Return the share of the last 10 s in which some task waited for the resource."""
    for line in file.read_text().splitlines():
        kind, *figures = line.split()
        if kind == "some":
            figure = dict(pair.split("=") for pair in figures)
            return float(figure["avg10"]) / 100
    raise ValueError(f'{file} has no line "some"')
