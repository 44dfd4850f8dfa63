"""What a kernel trace says of the steps: time in which no kernel ran, exposed transfers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stallscope.analyzers.quantities import Quantity, observe
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.trace_figures import trace_figures
from stallscope.profiler.capture import Capture

TRACE_BUSY = Quantity(("trace_kernel_busy",))  # union of kernel intervals over the traced window
_COVERS = 0.2  # a trace whose window is within this of the steps' time covers them


@dataclass(frozen=True, slots=True)
class Traced:
    """Shares of a phase's time. None where the trace does not say; idle as far as no copy ran."""

    idle: float
    communication: float | None
    transfer: float | None


def trace_busy(capture: Capture) -> float | None:
    """Return the share of the traced window in which a kernel ran; None without a trace."""
    found = observe(capture, "gpu_busy", TRACE_BUSY)
    return found[0].value if found else None


def queued_share(capture: Capture, phase: str | None = None) -> float:
    """Return the share of the traced window in which the device idled with work launched already.

    That is the device's own latency, so it is no time that the host kept it waiting. 0 where the
    trace does not say.
    """
    return statistics.fmean(trace_figures(capture, "idle_in_queued", phase) or (0.0,))


def window_s(capture: Capture, busy: float) -> float:
    """Return the traced time, summed over devices: as stated, else from the kernels' time."""
    stated = trace_figures(capture, "trace_window")
    if stated:
        return math.fsum(stated)
    return _kernels_s(capture, None) / busy if busy else 0.0


def _kernels_s(capture: Capture, phase: str | None) -> float:
    return math.fsum(k.busy_ns * 1e-9 for k in capture.kernels if phase in (None, k.phase))


def _exposed_share(
    capture: Capture, kernel_class: str, length_s: float, phase: str | None
) -> float | None:
    rows = [k for k in capture.kernels if k.kernel_class == kernel_class]
    if not length_s or any(k.exposed_ns is None for k in rows):
        return None
    if not rows and kernel_class == "communication":
        return None  # kernels of the links go by many names
    exposed = math.fsum(k.exposed_ns or 0 for k in rows if phase in (None, k.phase))
    return exposed * 1e-9 / length_s


def _traced(capture: Capture, busy: float, length_s: float, phase: str | None) -> Traced:
    """Take the shares of a window: one phase's, or with None that of the whole trace."""
    communication = _exposed_share(capture, "communication", length_s, phase)
    copies = _exposed_share(capture, "copy", length_s, phase)
    # A copy is no kernel: while one is exposed the device idles, but does not wait for the host.
    idle = 1.0 - busy - (copies or 0.0) - queued_share(capture, phase)
    return Traced(max(0.0, idle), communication, copies)


def trace_shares(capture: Capture, costs: Sequence[StepCost]) -> Mapping[str, Traced]:
    """Return what the trace says of each phase; empty without a trace.

    A reader that saw the timeline says how busy each phase was. Else a trace of the same steps
    splits its busy time over phases as it splits its kernels; one of other or fewer steps only has
    a mean.
    """
    busy = trace_busy(capture)
    if busy is None:
        return {}
    devices = len({k.device for k in capture.kernels}) or 1
    per_second = devices / (len({c.step.rank for c in costs}) or 1)  # device time a step's second
    times: dict[str, float] = {}
    for c in costs:
        times[c.step.phase] = times.get(c.step.phase, 0.0) + c.time_s * per_second
    own = {phase: trace_figures(capture, "trace_kernel_busy", phase) for phase in times}
    if times and all(own.values()):
        means = {phase: statistics.fmean(figures) for phase, figures in own.items()}
        return {p: _traced(capture, means[p], s, p) for p, s in times.items()}
    traced_s, steps_s = window_s(capture, busy), math.fsum(times.values())
    is_whole = (
        steps_s > 0 and {k.phase for k in capture.kernels} == set(times) and all(times.values())
    )
    if not is_whole or abs(traced_s - steps_s) > _COVERS * steps_s:
        return dict.fromkeys(times, _traced(capture, busy, traced_s, None))
    # Kernels that overlap are busy once: the union is this much of their sum.
    once = busy * steps_s / _kernels_s(capture, None)
    shares = {p: min(1.0, once * _kernels_s(capture, p) / s) for p, s in times.items()}
    return {p: _traced(capture, shares[p], s, p) for p, s in times.items()}


def with_trace(costs: Sequence[StepCost], capture: Capture) -> tuple[StepCost, ...]:
    """Count device-idle time inside the forward call as the host's, and exposed transfers."""
    shares = trace_shares(capture, costs)
    if not shares:
        return tuple(costs)
    rates = {phase: _rates(costs, phase, traced) for phase, traced in shares.items()}
    return tuple(_with(c, shares[c.step.phase], rates[c.step.phase]) for c in costs)


@dataclass(frozen=True, slots=True)
class _Rates:
    """Of a phase: how much is the host's of the time outside the forward call, and inside it."""

    outside: float
    inside: float


def _rates(costs: Sequence[StepCost], phase: str, traced: Traced) -> _Rates:
    """Make the host's time of a phase max(idle, outside the forward call − exposed copies).

    The device idles outside the forward call too: that counts once. A copy that the loop waits for
    there is the link's time and not the host's.
    """
    time_s = math.fsum(c.time_s for c in costs if c.step.phase == phase)
    outside_s = math.fsum(c.host_s for c in costs if c.step.phase == phase)
    forward_s, idle_s = time_s - outside_s, traced.idle * time_s
    host_s = max(0.0, outside_s - (traced.transfer or 0.0) * time_s)
    host_s = max(host_s, min(idle_s, outside_s))
    return _Rates(
        outside=host_s / outside_s if outside_s > 0 else 1.0,
        inside=max(0.0, idle_s - host_s) / forward_s if forward_s > 0 else 0.0,
    )


def _with(c: StepCost, traced: Traced, rates: _Rates) -> StepCost:
    seen = {"communication": traced.communication, "transfer": traced.transfer}
    known = {part: share * c.time_s for part, share in seen.items() if share is not None}
    host_s = rates.outside * c.host_s + rates.inside * (c.time_s - c.host_s)
    floor = None if c.floor is None else {**c.floor, **known}
    traced_parts = frozenset(("host", *known))
    return StepCost(c.step, c.time_s, host_s, floor, c.probed, traced_parts, c.excess_s)
