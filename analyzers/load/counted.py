"""Throughput of a server from its own counters, as sampled."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.load.span import Span
from stallscope.analyzers.result import Throughput
from stallscope.profiler.capture import EngineSample

_NS = 1e-9


def counted_throughput(samples: Sequence[EngineSample], span: Span) -> Throughput:
    """Return how much the counters of all engines rose inside a span, over its time."""
    return Throughput(
        input_tokens_per_s=_rate(samples, "input_tokens_total", span),
        output_tokens_per_s=_rate(samples, "output_tokens_total", span),
        requests_per_s=_rate(samples, "finished_total", span),
    )


def _rate(samples: Sequence[EngineSample], name: str, span: Span) -> float | None:
    """Add up the rise of each engine's counter; None where none was read twice."""
    seen: dict[str, list[EngineSample]] = {}
    for sample in samples:
        if sample.name == name and span.start_ns <= sample.t_ns <= span.end_ns:
            seen.setdefault(sample.engine, []).append(sample)
    ends = [
        (min(rows, key=lambda s: s.t_ns), max(rows, key=lambda s: s.t_ns)) for rows in seen.values()
    ]
    moved = [(first, last) for first, last in ends if last.t_ns > first.t_ns]
    if not moved:
        return None
    begin_ns = min(first.t_ns for first, _ in moved)
    end_ns = max(last.t_ns for _, last in moved)
    return sum(last.value - first.value for first, last in moved) / ((end_ns - begin_ns) * _NS)
