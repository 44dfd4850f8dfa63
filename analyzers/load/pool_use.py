"""How full the KV pools of sampled engines were."""

from __future__ import annotations

from collections.abc import Iterator

from stallscope.analyzers.load.engines import Values, clip, moments
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.measures import measure
from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.evidence import Measure


def used_share(values: Values) -> float | None:
    """Return the used part of an engine's pool; None where it does not say."""
    if values.get("kv_total_bytes") and "kv_used_bytes" in values:
        return values["kv_used_bytes"] / values["kv_total_bytes"]
    return values.get("kv_used_fraction")


def pool_measures(capture: Capture, span: Span) -> Iterator[Measure]:
    """Yield peak and mean use by the samples in a span; nothing where steps say it themselves.

    The peak is over every reading, the one that closes the span included. The mean weighs a reading
    by the time until the next one: how long the last one held nobody saw, so it has no weight. A
    reader whose lines close a period places their gauges where that period begins.
    """
    if any(s.kv_total_bytes for s in capture.steps):
        return
    found = moments(capture.engine_samples)
    shares = [
        (m.duration_ns, share)
        for m in clip(found, span.start_ns, span.end_ns)
        for v in m.engines.values()
        if (share := used_share(v)) is not None
    ]
    if not shares:
        return
    engines = len({name for m in found for name in m.engines})
    source = "sampled KV pool gauge" + (f" of {engines} engines" if engines > 1 else "")
    total = sum(ns for ns, _ in shares)
    peak = max([s for _, s in shares] + list(_readings(capture, span)))
    yield measure("kv_used_peak", peak, "measured", source)
    yield measure("kv_used_mean", sum(ns * s for ns, s in shares) / total, "measured", source)


def _readings(capture: Capture, span: Span) -> Iterator[float]:
    """Yield what each engine said itself in a span, its end included."""
    by_engine: dict[str, list[EngineSample]] = {}
    for sample in capture.engine_samples:
        by_engine.setdefault(sample.engine, []).append(sample)
    for rows in by_engine.values():
        for moment in moments(rows):  # a list: not to put the run's own out of what is kept
            if not span.start_ns <= moment.start_ns <= span.end_ns:
                continue
            yield from (s for v in moment.engines.values() if (s := used_share(v)) is not None)
