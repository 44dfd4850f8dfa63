"""A short mark by which a run is known again, wherever its capture lies and whatever its name."""

from __future__ import annotations

import hashlib

from stallscope.profiler.capture import Capture

_DIGITS = 12


def run_mark(capture: Capture) -> str:
    """Return a mark of the steps' lengths: no two runs take the same nanoseconds all along."""
    lengths = ",".join(str(step.end_ns - step.start_ns) for step in capture.steps)
    return hashlib.sha256(lengths.encode()).hexdigest()[:_DIGITS]
