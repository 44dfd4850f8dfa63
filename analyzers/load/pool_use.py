"""How full the KV pools of sampled engines were."""

from __future__ import annotations

from collections.abc import Iterator

from stallscope.analyzers.load.engines import Values, clip, moments
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.measures import measure
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure


def used_share(values: Values) -> float | None:
    """Return the used part of an engine's pool; None where it does not say."""
    if values.get("kv_total_bytes") and "kv_used_bytes" in values:
        return values["kv_used_bytes"] / values["kv_total_bytes"]
    return values.get("kv_used_fraction")


def pool_measures(capture: Capture, span: Span) -> Iterator[Measure]:
    """Yield peak and mean use by the samples in a span; nothing where steps say it themselves."""
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
    yield measure("kv_used_peak", max(s for _, s in shares), "measured", source)
    yield measure("kv_used_mean", sum(ns * s for ns, s in shares) / total, "measured", source)
