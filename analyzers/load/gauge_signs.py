"""What gauges over time show beside their means: a queue that grows, one engine that is worse."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.load.engines import clip, moments, queued
from stallscope.analyzers.load.gauges import Gauge, in_system
from stallscope.analyzers.load.put_back import LEAST, Fall
from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import Capture

_SOME = 0.05  # of the requests in flight


def rises(rows: Sequence[Gauge]) -> bool:
    """Tell whether the queue's last third lies above its first, by half and by one request."""
    if len(rows) < 6:
        return False
    third = len(rows) // 3
    early = sum(g.waiting for g in rows[:third]) / third
    late = [g.waiting for g in rows[-third:]]
    return sum(late) / third >= early * 1.5 + 1.0 and min(late) > early


def fills(rows: Sequence[Gauge], falls: Sequence[Fall]) -> bool:
    """Tell whether running requests went back into a queue that stood most of the time.

    One in twenty of those in flight, or more: that is the pool's limit, however few it leaves over.
    """
    total = sum(g.duration_ns for g in rows)
    standing = sum(g.duration_ns for g in rows if g.waiting)
    went = sum(f.requests for f in falls)
    return 2 * standing >= total and went >= max(LEAST, _SOME * in_system(rows) / total)


def worst_engine(capture: Capture, span: Span) -> float | None:
    """Return the largest queued share of one engine; a sum over engines hides it."""
    found = clip(moments(capture.engine_samples), span.start_ns, span.end_ns)
    names = {name for m in found for name in m.engines}
    if len(names) < 2:
        return None
    shares = []
    for name in names:
        seen = [(m.duration_ns, m.engines[name]) for m in found if name in m.engines]
        waiting = sum(ns * queued(v) for ns, v in seen)
        all_ns = waiting + sum(ns * v["running"] for ns, v in seen)
        shares.append(waiting / all_ns if all_ns else 0.0)
    return max(shares)


def at_end(capture: Capture, span: Span, rows: Sequence[Gauge]) -> tuple[float, float] | None:
    """Return what ran and waited at the last reading, where nothing was in flight before it."""
    last = moments(capture.engine_samples)[-1:]
    if capture.steps or in_system(rows) or not last or last[0].duration_ns:
        return None
    if last[0].start_ns > span.end_ns:
        return None
    running = sum(v["running"] for v in last[0].engines.values())
    waiting = sum(queued(v) for v in last[0].engines.values())
    return (running, waiting) if running + waiting else None
