"""Whether others took the cores that a run on the CPU needed."""

from __future__ import annotations

import dataclasses
import statistics

from stallscope.analyzers.step.limit import MUCH_UNEXPLAINED, Decision
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture

_FULL = 0.9  # share of the cores' time in use from which no core is free
_CONTENDED = 0.1  # share of the cores that others must take to matter


def contention(capture: Capture) -> float | None:
    """Return the share of a full machine's cores that others kept busy; None while it had room.

    A run that fills its cores slows down by more than what others take: its threads wait for each
    other at the end of every operator. An engine's own worker processes count as others: only the
    process that records is known.
    """
    host = capture.meta.get("host") or {}
    # In a container the system may count the time of more CPUs than a process there may use.
    cpus = host.get("counted_cpus") or host.get("cpus")
    own = [s.value for s in capture.device_samples if s.name == "host_cpu_cores"]
    other = [s.value for s in capture.device_samples if s.name == "host_other_cpu_cores"]
    if not cpus or not own or not other:
        return None
    others = statistics.fmean(other) / cpus
    if others > 1.0 and not host.get("counted_cpus"):
        return None  # counted over more CPUs than were noted
    others = min(1.0, others)
    is_full = statistics.fmean(own) / cpus + others >= _FULL
    return others if is_full and others >= _CONTENDED else None


def _on_cpu(capture: Capture) -> bool:
    return capture.subject.device is not None and capture.subject.device.is_cpu


def contention_note(capture: Capture) -> tuple[str, ...]:
    """Say what a contended machine does to the figures; nothing while it had room."""
    share = contention(capture)
    if share is None:
        return ()
    holds = "step times hold" if _on_cpu(capture) else "the host's part of step times may hold"
    return (
        f"Other processes (an engine's own workers count among them) kept {percent(share)} of this "
        f"machine's cores busy during the run, and none was free: {holds} that too. Run again with "
        "the machine to itself.",
    )


def with_contention(decision: Decision, capture: Capture) -> Decision:
    """Name the device beside the best class where a contended machine left a step unexplained."""
    if decision.bottleneck != "undetermined" or decision.unexplained < MUCH_UNEXPLAINED:
        return decision
    if not decision.between or not _on_cpu(capture) or contention(capture) is None:
        return decision
    return dataclasses.replace(decision, between=(decision.between[0], "device"))
