"""Whether others took the cores that a run on the CPU needed."""

from __future__ import annotations

import dataclasses
import statistics

from stallscope.analyzers.step.limit import MUCH_UNEXPLAINED, Decision
from stallscope.profiler.capture import Capture

_FULL = 0.9  # share of the cores' time in use from which no core is free
_CONTENDED = 0.1  # share of the cores that others must take to matter


def contention(capture: Capture) -> float | None:
    """Return the share of a full machine's cores that others kept busy; None while it had room.

    A run that fills its cores slows down by more than what others take: its threads wait for each
    other at the end of every operator.
    """
    cpus = (capture.meta.get("host") or {}).get("cpus")
    own = [s.value for s in capture.device_samples if s.name == "host_cpu_cores"]
    other = [s.value for s in capture.device_samples if s.name == "host_other_cpu_cores"]
    if not cpus or not own or not other:
        return None
    others = statistics.fmean(other) / cpus
    is_full = statistics.fmean(own) / cpus + others >= _FULL
    return others if is_full and others >= _CONTENDED else None


def with_contention(decision: Decision, capture: Capture) -> Decision:
    """Name the device beside the best class where a contended machine left a step unexplained."""
    if decision.bottleneck != "undetermined" or decision.unexplained < MUCH_UNEXPLAINED:
        return decision
    if not decision.between or contention(capture) is None:
        return decision
    return dataclasses.replace(decision, between=(decision.between[0], "device"))
