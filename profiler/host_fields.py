"""What is sampled of the host: this process's memory and CPU, the machine's memory and pressure.

The process alone is counted, without its children: a Recorder lives inside the engine's own
process, and walking /proc for children costs milliseconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from stallscope.profiler.host_sampler import HostField
from stallscope.profiler.machine_memory import MachineMemory
from stallscope.profiler.own_cpu import OwnCpu
from stallscope.profiler.proc_files import FileFigure, OpenFile, busy_s, pressure, rss_bytes
from stallscope.profiler.run_queue import RunQueue
from stallscope.profiler.switches import Switches
from stallscope.profiler.usable_cpus import UsableCpus, usable_cpus

# Waking beside a decoding model costs 0.1 ms, and means over half a second lose nothing.
HOST_HZ = 2.0
SLOW_NS = 2_000_000_000
_ONE_READING_NS = 1_000_000  # what is read by one sample
_ALL_CPUS = 1 << 17  # bytes: the lines of a thousand CPUs
_LINUX = "record on Linux: it tells how long each thread waited for a core"


def host_fields(proc: Path = Path("/proc")) -> tuple[HostField, ...]:
    """Return the host's counters; `proc` is where Linux keeps its figures."""
    rss, memory = _rss(proc), MachineMemory(proc)
    stat = OpenFile(proc / "stat", size=_ALL_CPUS, fresh_ns=_ONE_READING_NS)
    other, own = OtherCpuCores(_busy(stat)), OwnCpu(str(proc))
    queue, cpus = RunQueue(proc), UsableCpus(stat, usable_cpus(), own)
    return (
        HostField("host_rss_bytes", "bytes", rss, close=_close_of(rss)),
        HostField("host_cpu_cores", "cores", CpuCores()),
        HostField("host_other_cpu_cores", "cores", other, close=stat.close),
        HostField("host_run_wait", "fraction", queue.longest, _LINUX, close=queue.close),
        HostField("host_run_wait_threads", "threads", queue.threads, _LINUX),
        HostField("host_neighbour_cores", "cores", cpus.others, _LINUX, close=own.close),
        HostField("host_steal_cores", "cores", cpus.stolen, _LINUX),
        HostField("host_involuntary_switches", "1/s", Switches(), _LINUX),
        HostField("host_memory_total_bytes", "bytes", memory.total_bytes, every_ns=SLOW_NS),
        HostField(
            "host_memory_available_bytes",
            "bytes",
            memory.available_bytes,
            every_ns=SLOW_NS,
            close=memory.close,
        ),
        *(_pressure_field(proc / "pressure" / resource) for resource in ("cpu", "memory", "io")),
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

    def __init__(self, busy_s: Callable[[], float]) -> None:
        """`busy_s` returns the CPU seconds that all cores have spent, this process's among them."""
        self._busy_s = busy_s
        self._wall_ns, self._other_s = time.perf_counter_ns(), 0.0
        with suppress(OSError):  # then the first call, a probe, says what is missing
            self._other_s = self._now_s()

    def __call__(self) -> float:
        wall_ns, other_s = time.perf_counter_ns(), self._now_s()
        busy = (other_s - self._other_s) / max(1e-9, (wall_ns - self._wall_ns) / 1e9)
        self._wall_ns, self._other_s = wall_ns, other_s
        return max(0.0, busy)  # the system's clock ticks are coarser than the process's own

    def _now_s(self) -> float:
        return self._busy_s() - time.process_time_ns() / 1e9


def other_cores(proc: Path = Path("/proc")) -> OtherCpuCores:
    """Return what tells, at each call, how many cores others kept busy since the last one."""
    return OtherCpuCores(_busy((proc / "stat").read_bytes))


def _rss(proc: Path) -> Callable[[], float]:
    if sys.platform == "linux":
        return FileFigure(proc / "self" / "statm", rss_bytes)
    process = psutil.Process()
    return lambda: float(process.memory_info().rss)


def _busy(stat: Callable[[], bytes]) -> Callable[[], float]:
    return (lambda: busy_s(stat())) if sys.platform == "linux" else _busy_s_elsewhere


def _busy_s_elsewhere() -> float:
    times = psutil.cpu_times()
    return float(sum(times) - times.idle)


def _close_of(read: Callable[[], float]) -> Callable[[], None] | None:
    return read.close if isinstance(read, FileFigure) else None


def _pressure_field(file: Path) -> HostField:
    figure = FileFigure(file, pressure)
    return HostField(
        f"psi_{file.name}_some",
        "fraction",
        figure,
        "run on Linux 4.20 or later with pressure stall information (boot with psi=1)",
        every_ns=SLOW_NS,  # the figure is itself a mean over ten seconds
        close=figure.close,
    )
