"""Ranks of one run compared by their kernels: who computes longest, and who waits for whom."""

from __future__ import annotations

import statistics

from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture

STRAGGLES = 0.05  # this much more computing than the median rank


def straggler_notes(capture: Capture) -> tuple[str, ...]:
    """Name the rank whose kernels take longest, where that is more than noise.

    Communication is left out: a rank that is early waits in it for the late one, so that the
    straggler is the one that communicates least.
    """
    computing: dict[int, int] = {}
    for row in capture.kernels:
        if row.kernel_class not in ("communication", "copy"):
            computing[row.rank] = computing.get(row.rank, 0) + row.busy_ns
    if len(computing) < 2:
        return ()
    median_ns = statistics.median(computing.values())
    rank = max(computing, key=computing.__getitem__)
    excess = computing[rank] / median_ns - 1 if median_ns else 0.0
    if excess < STRAGGLES:
        return ()
    return (
        f"Rank {rank} computes for {computing[rank] / 1e6:.1f} ms where the median of "
        f"{len(computing)} ranks takes {median_ns / 1e6:.1f} ms (+{percent(excess)}): the others "
        "wait for it.",
    )
