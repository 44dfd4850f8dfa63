"""Waiting and running requests over time, from steps or from samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stallscope.analyzers.load.engines import clip, moments, queued
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.ranks import by_rank, engine_steps
from stallscope.profiler.capture import Capture, Step


class Gauge(NamedTuple):
    """The engine's waiting and running requests for a stretch of time."""

    duration_ns: int
    waiting: float
    running: float


def gauges(capture: Capture, span: Span) -> tuple[Gauge, ...]:
    """Return waiting and running over time: from the steps, else from the engines' samples.

    Of ranks with steps of their own, those of the one with most in the system.
    """
    steps = [s for s in capture.steps if not s.warmup]
    if steps and all(s.waiting is not None and s.running is not None for s in steps):
        ranks = (tuple(_step_gauges(rows, span)) for rows in by_rank(engine_steps(steps)))
        return max(ranks, key=in_system)
    return tuple(
        Gauge(
            m.duration_ns,
            sum(queued(v) for v in m.engines.values()),
            sum(v["running"] for v in m.engines.values()),
        )
        for m in clip(moments(capture.engine_samples), span.start_ns, span.end_ns)
    )


def in_system(rows: Sequence[Gauge]) -> float:
    return sum((g.waiting + g.running) * g.duration_ns for g in rows)


def _step_gauges(steps: Sequence[Step], span: Span) -> Iterator[Gauge]:
    """Yield each step's gauges, and nothing in flight for a gap that no request lived through.

    A step that decodes brought its requests over the gap before it, and so did a queue.
    """
    reached, held = None, False
    for step in steps:
        if reached is not None and not step.decode_requests and not held:
            idle_ns = span.overlap_ns(reached, step.start_ns)
            if idle_ns:
                yield Gauge(idle_ns, 0, 0)
        inside_ns = span.overlap_ns(step.start_ns, step.end_ns)
        if inside_ns:
            yield Gauge(inside_ns, step.waiting or 0, step.running or 0)
        reached, held = max(reached or 0, step.end_ns), bool(step.waiting)
