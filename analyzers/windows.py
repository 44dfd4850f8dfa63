"""The run in windows: each judged alone, so that a limit that changes is seen to change."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.judge import judge
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.result import Window
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture

MAX_WINDOWS = 12
_MARGIN_NS = 60_000_000_000
_MIN_STEPS = 20  # a window holds many steps, or its rates jump


def split(span: Span, costs: Sequence[StepCost]) -> tuple[Span, ...]:
    """Cut a span into at most MAX_WINDOWS equal windows of at least _MIN_STEPS median steps."""
    if not span.duration_ns:
        return ()
    step_s = statistics.median(c.time_s for c in costs) if costs else span.duration_ns * 1e-9 / 60
    most = int(span.duration_ns * 1e-9 / max(step_s * _MIN_STEPS, 1e-3))
    count = max(1, min(MAX_WINDOWS, most))
    edges = [span.start_ns + span.duration_ns * i // count for i in range(count + 1)]
    return tuple(Span(a, b) for a, b in zip(edges, edges[1:], strict=False))


def _samples_within(capture: Capture, span: Span) -> Capture:
    """Keep the window's device samples, and the engine's with a margin: a queue has a history."""
    within = (s for s in capture.device_samples if span.start_ns <= s.t_ns <= span.end_ns)
    margin = max(span.duration_ns, _MARGIN_NS)
    first, last = span.start_ns - margin, span.end_ns + margin
    near = (s for s in capture.engine_samples if first <= s.t_ns <= last)
    return dataclasses.replace(capture, device_samples=tuple(within), engine_samples=tuple(near))


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
    windows = []
    for window in split(span, costs):
        inside = [c for c in costs if window.start_ns <= c.step.start_ns < window.end_ns]
        seen = _samples_within(capture, window)
        result = judge(seen, inside, cost=cost, missing=missing, span=window, t=t)
        windows.append(
            Window(
                from_s=(window.start_ns - span.start_ns) * 1e-9,
                to_s=(window.end_ns - span.start_ns) * 1e-9,
                bottleneck=result.bottleneck,
                load=result.load,
            )
        )
    return tuple(windows)
