"""Means of the host's samples over a span: each sample is a mean since the one before it."""

from __future__ import annotations

import math

from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import Capture

HOST = "host"
_LONGEST_NS = 5_000_000_000  # what one sample may speak for: beyond that others are missing
_FIRST_NS = 500_000_000  # what a sample without one before it speaks for
_COVERS = 0.5  # of a span that samples must speak for


def host_mean(capture: Capture, name: str, span: Span) -> float | None:
    """Return a sample's mean over a span, by the time that each speaks for.

    None where samples speak for less than half of the span.
    """
    seen = [s for s in capture.device_samples if s.device == HOST and s.name == name]
    seen.sort(key=lambda s: s.t_ns)
    weights, values, before_ns = [], [], None
    for sample in seen:
        since_ns = sample.t_ns - _FIRST_NS if before_ns is None else before_ns
        since_ns = max(since_ns, sample.t_ns - _LONGEST_NS)
        weights.append(span.overlap_ns(since_ns, sample.t_ns))
        values.append(sample.value)
        before_ns = sample.t_ns
    known_ns = sum(weights)
    if not known_ns or known_ns < _COVERS * span.duration_ns:
        return None
    return math.fsum(w * v for w, v in zip(weights, values, strict=True)) / known_ns
