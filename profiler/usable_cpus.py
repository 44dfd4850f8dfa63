"""Who keeps the CPUs busy that this process may use: other processes, the hypervisor (Linux)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import NamedTuple

from stallscope.profiler.cgroup import tightest_cpu_quota


class Spent(NamedTuple):
    """CPU seconds since the machine began: run by any process, and stolen by the hypervisor."""

    busy_s: float
    stolen_s: float


class UsableCpus:
    """Tells from /proc/stat what the CPUs did that this process may use.

    `own_s` returns the CPU seconds of those that are no others: this process and those it started.
    `others()` reads, `stolen()` tells the other figure of that reading; both are cores, on average
    since the reading before.
    """

    def __init__(
        self,
        stat: Callable[[], bytes],
        cpus: Collection[int],
        own_s: Callable[[], float],
        *,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """`stat` returns the text of /proc/stat."""
        self._stat, self._names = stat, frozenset(f"cpu{i}".encode() for i in cpus)
        self._own_s, self._clock = own_s, clock
        self._before = clock(), Spent(0.0, 0.0), 0.0
        self._stolen: float | None = None
        with suppress(OSError):  # then the first call, a probe, says what is missing
            self._before = self._now()

    def others(self) -> float:
        """Return how many of these CPUs other processes kept busy."""
        self._stolen = None
        (then_ns, before, own_before_s), now = self._before, self._now()
        now_ns, spent, own_s = self._before = now
        length_s = max(1, now_ns - then_ns) * 1e-9
        self._stolen = max(0.0, spent.stolen_s - before.stolen_s) / length_s
        others_s = (spent.busy_s - before.busy_s) - (own_s - own_before_s)
        return max(0.0, others_s / length_s)  # ticks are coarser than the process's own clock

    def stolen(self) -> float | None:
        """Return how many of them the hypervisor gave to other machines; None without a reading."""
        return self._stolen

    def _now(self) -> tuple[int, Spent, float]:
        spent = spent_by(self._stat(), self._names)
        return self._clock(), spent, self._own_s()


def spent_by(stat: bytes, names: Collection[bytes]) -> Spent:
    """Return what the text of /proc/stat says of some CPUs; ValueError where one is missing.

    "steal" is apart; the time of guests is within "user" and "nice" already (man 5 proc_stat).
    """
    lines = stat.partition(b"\nintr")[0].splitlines()  # what follows may be long
    found = [line.split() for line in lines if line.partition(b" ")[0] in names]
    rows = [[int(figure) for figure in line[1:]] for line in found]
    if len(rows) < len(names):
        raise ValueError(f"/proc/stat tells of {len(rows)} of the {len(names)} CPUs in use")
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    busy = sum(
        user + nice + system + irq + soft for user, nice, system, _, _, irq, soft, *_ in rows
    )
    return Spent(busy * tick_s, sum(row[7] for row in rows) * tick_s)


def usable_cpus() -> frozenset[int]:
    """Return the CPUs that this process may run on; none where the system does not say."""
    affinity = getattr(os, "sched_getaffinity", None)
    return frozenset() if affinity is None else frozenset(affinity(0))


def usable_cores() -> float | None:
    """Return how many cores this process may fill: its CPUs, or less by its group's quota."""
    cpus, quota = len(usable_cpus()), tightest_cpu_quota()
    if not cpus:
        return None
    return float(cpus) if quota is None else min(float(cpus), quota)
