"""What the host did while the device waited for it, as far as a trace's figures say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from stallscope.analyzers.words import percent
from stallscope.profiler.evidence import Measure

# Causes of idle time (profiler.trace.gap_causes) that call for the same remedy. Work that was
# queued already (`idle_in_queued`) is none of the host's. "first" and "operators" are launches and
# operators that take longer for each kernel than launching ever does.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "launch": ("idle_in_launch", "idle_in_operator"),
    "first": ("idle_in_launch",),
    "operators": ("idle_in_operator",),
    "copy": ("idle_in_copy",),
    "alloc": ("idle_in_alloc",),
    "capture": ("idle_in_capture",),
    "sync": ("idle_in_sync",),
    "wait": ("idle_in_wait",),
    "unseen": ("idle_in_unseen",),
}
# A framework spends some 5 to 20 µs on launching a kernel, and up to some 200 µs with all of its
# operators traced. A kernel's first launch loads its code and may try out variants: milliseconds.
_LONG_S = 1e-3
_WORTH = 0.25  # of the time that the host kept the device waiting: less is not worth a remedy
_WHILE: Mapping[str, str] = {
    "launch": "while the host launched kernels or ran a framework's operators",
    "first": "in launches that took over a millisecond a kernel, as first ones do",
    "operators": "inside operators that took over a millisecond a kernel on the host",
    "copy": "while the host asked for copies",
    "alloc": "while the host allocated or freed memory of the device",
    "capture": "while the host captured CUDA graphs",
    "sync": "while the host waited for the device",
    "wait": "while the host waited for something else in the system",
    "unseen": "with nothing traced on the host",
}


@dataclass(frozen=True, slots=True)
class HostIdle:
    """Shares of the traced window that the device idled, by group, the largest first.

    Empty where nothing of the host was traced: then all of the time is unseen.
    """

    shares: Mapping[str, float]

    @property
    def total(self) -> float:
        """The share of the window in which the device waited for the host."""
        return math.fsum(self.shares.values())

    @property
    def causes(self) -> tuple[str, ...]:
        """The groups that hold much of that time; only "unseen" where nothing was traced."""
        least = _WORTH * self.total
        return tuple(g for g, share in self.shares.items() if share >= least) or ("unseen",)


def host_idle(found: Mapping[str, Measure]) -> HostIdle | None:
    """Group a trace's idle time by what helps against it; None where no trace was read."""
    if "trace_window" not in found:
        return None
    shares: dict[str, float] = {}
    for name in dict.fromkeys(name for names in GROUPS.values() for name in names):
        if name in found:
            group = _group(name, found)
            shares[group] = shares.get(group, 0.0) + found[name].value
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    return HostIdle({group: share for group, share in ranked if share > 0})


def _group(name: str, found: Mapping[str, Measure]) -> str:
    rate = found["kernel_rate"].value if "kernel_rate" in found else 0.0
    is_long = rate > 0 and found[name].value / rate > _LONG_S
    long_group = {"idle_in_launch": "first", "idle_in_operator": "operators"}.get(name)
    if is_long and long_group is not None:
        return long_group
    return next(group for group, names in GROUPS.items() if name in names)


def evidence_of(group: str) -> tuple[str, ...]:
    """Name the measures behind a group."""
    rate = ("kernel_rate",) if group in ("launch", "first", "operators") else ()
    return (*GROUPS[group], *rate, "gpu_busy")


def idle_text(idle: HostIdle) -> str:
    """Say what holds the largest part of the time in which the device waited."""
    if not idle.shares:
        return "nothing of the host was traced that says why"
    first = idle.causes[0]
    return f"the largest part, {percent(idle.shares[first])} of the traced window, {_WHILE[first]}"
