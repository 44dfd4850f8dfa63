"""The run in windows: each judged alone, so that a limit that changes is seen to change."""

from __future__ import annotations

import dataclasses
import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import TypeVar

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.cost.work import of_phases
from stallscope.analyzers.judge import judge
from stallscope.analyzers.limits import PHASES, phase_decision
from stallscope.analyzers.load.put_back import Fall, fallen_in, put_back
from stallscope.analyzers.load.sampled_steps import sample_interval_s, sampled_step_s
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.result import PhaseWindow, Window
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.step.host_means import HOST
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, DeviceSample, EngineSample

MAX_WINDOWS = 12
_MARGIN_NS = (
    60_000_000_000,
    3_600_000_000_000,
)  # at least, at most; else a window
_MIN_STEPS = 20  # a window holds many steps, or its rates jump
_MIN_OF_PHASE = 5  # steps of a phase in a window, before they are judged apart
_Sample = TypeVar("_Sample", DeviceSample, EngineSample)
_time = attrgetter("t_ns")
_MIN_SAMPLES = 5  # and many samples: at turnover, running dips in one of them


def split(
    span: Span, costs: Sequence[StepCost], samples: Sequence[EngineSample] = ()
) -> tuple[Span, ...]:
    """Cut a span into at most MAX_WINDOWS equal windows.

    Each holds _MIN_STEPS steps or more, as recorded or as counters of tokens tell, and where there
    are only samples _MIN_SAMPLES of them.
    """
    if not span.duration_ns or span.is_instant:
        return ()
    most = int(span.duration_ns * 1e-9 / max(_least_s(span, costs, samples), 1e-3))
    count = max(1, min(MAX_WINDOWS, most))
    edges = [span.start_ns + span.duration_ns * i // count for i in range(count + 1)]
    return tuple(Span(a, b) for a, b in zip(edges, edges[1:], strict=False))


def _least_s(span: Span, costs: Sequence[StepCost], samples: Sequence[EngineSample]) -> float:
    if costs:
        return _MIN_STEPS * statistics.median(c.time_s for c in costs)
    interval_s = sample_interval_s(samples)
    if interval_s is None:
        return span.duration_ns * 1e-9 / 3
    return max(_MIN_SAMPLES * interval_s, _MIN_STEPS * (sampled_step_s(samples, span) or 0.0))


def _by_time(capture: Capture) -> Capture:
    """Order a capture's samples, so that a window's are found without a look at all others."""
    device = tuple(sorted(capture.device_samples, key=_time))
    engine = tuple(sorted(capture.engine_samples, key=_time))
    return dataclasses.replace(capture, device_samples=device, engine_samples=engine)


def _samples_within(ordered: Capture, hosts: tuple[DeviceSample, ...], span: Span) -> Capture:
    """Keep the window's device samples, and the engine's with a margin: a queue has a history.

    A sample of the host is a mean since the one before: those around the window speak for it too.
    """
    least, most = _MARGIN_NS
    margin = min(max(span.duration_ns, least), most)
    within = _between(ordered.device_samples, span.start_ns, span.end_ns)
    near = _between(ordered.engine_samples, span.start_ns - margin, span.end_ns + margin)
    device = (*within, *_around(hosts, span))
    return dataclasses.replace(ordered, device_samples=device, engine_samples=near)


def _between(samples: tuple[_Sample, ...], first_ns: int, last_ns: int) -> tuple[_Sample, ...]:
    start = bisect_left(samples, first_ns, key=_time)
    return samples[start : bisect_right(samples, last_ns, key=_time)]


def _around(hosts: tuple[DeviceSample, ...], span: Span) -> tuple[DeviceSample, ...]:
    """Return the host's samples of the two moments nearest to a window, before and after it."""
    before = hosts[: bisect_left(hosts, span.start_ns, key=_time)]
    after = hosts[bisect_right(hosts, span.end_ns, key=_time) :]
    nearest = {*(s.t_ns for s in before[-1:]), *(s.t_ns for s in after[:1])}
    return tuple(s for s in (*before, *after) if s.t_ns in nearest)


def _number(falls: Sequence[Fall]) -> float | None:
    return sum(f.requests for f in falls) if falls else None


def _phases(
    seen: Capture, costs: Sequence[StepCost], cost: CostModel | None, missing: str, t: Thresholds
) -> tuple[PhaseWindow, ...]:
    """Judge the steps of each phase apart, where a window has enough of them to tell."""
    total_s = math.fsum(c.time_s for c in costs)
    own = dataclasses.replace(seen, steps=tuple(c.step for c in costs))
    found = []
    for phase in PHASES:
        chosen = of_phases(costs, phase)
        if len(chosen) >= _MIN_OF_PHASE and total_s:
            decision = phase_decision(own, costs, cost, missing, t, (phase,))
            share = math.fsum(c.time_s for c in chosen) / total_s
            found.append(PhaseWindow(phase, decision.bottleneck, share))
    return tuple(found)


def judge_windows(
    capture: Capture,
    costs: Sequence[StepCost],
    *,
    cost: CostModel | None,
    missing: str,
    span: Span,
    t: Thresholds,
) -> tuple[Window, ...]:
    """Judge each window by the steps that start in it and the device samples taken in it.

    Times are seconds from the span's start.
    """
    windows, ordered = [], _by_time(capture)
    hosts = tuple(s for s in ordered.device_samples if s.device == HOST)
    falls = put_back(capture.engine_samples)
    for window in split(span, costs, capture.engine_samples):
        inside = [c for c in costs if window.start_ns <= c.step.start_ns < window.end_ns]
        seen = _samples_within(ordered, hosts, window)
        result = judge(seen, inside, cost=cost, missing=missing, span=window, t=t)
        windows.append(
            Window(
                from_s=(window.start_ns - span.start_ns) * 1e-9,
                to_s=(window.end_ns - span.start_ns) * 1e-9,
                bottleneck=result.bottleneck,
                load=result.load,
                limit=result.decision.limit,
                put_back=_number(fallen_in(falls, window)),
                phases=_phases(seen, inside, cost, missing, t),
            )
        )
    return tuple(windows)
