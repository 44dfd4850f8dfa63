"""Latencies by an engine's own histograms: means, and of requests that came to an end."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.load.engines import risen
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.result import Distribution
from stallscope.profiler.capture import Capture

_METRICS = ("ttft_s", "tpot_s", "itl_s", "e2e_s", "queue_s")
_COUNTERS = frozenset(f"{metric}_{end}" for metric in _METRICS for end in ("sum", "count"))
NOTE = (
    "Latencies are means over what the engine's own histograms counted meanwhile: requests that "
    "ended, or got a first token. Those that still wait are in none of them, and buckets are too "
    "coarse for percentiles."
)


def engine_latencies(capture: Capture, span: Span) -> Mapping[str, Distribution]:
    """Return each latency's mean in seconds: the rise of its sum over that of its count.

    A histogram in which nothing was counted meanwhile is left out. None of it denies a queue: the
    time of those that wait is not in it.
    """
    inside = [
        s
        for s in capture.engine_samples
        if s.name in _COUNTERS and span.start_ns <= s.t_ns <= span.end_ns
    ]
    found = {}
    for metric in _METRICS:
        total, count = risen(inside, f"{metric}_sum"), risen(inside, f"{metric}_count")
        if total is not None and count:
            found[metric] = Distribution(total / count, None, None, None, round(count))
    return found


def latency_note(
    found: Mapping[str, Distribution], better: Mapping[str, Distribution]
) -> tuple[str, ...]:
    """Say what the means are of, where requests known one by one do not replace them all."""
    return (NOTE,) if found.keys() - better.keys() else ()
