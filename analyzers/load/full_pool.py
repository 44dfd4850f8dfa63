"""A full KV pool, a queue and requests put back, where nothing tells how many run.

An engine puts running requests back only where KV blocks ran out: that is direct evidence, and
holds without the gauge by which a queue is judged else.
"""

from __future__ import annotations

from stallscope.analyzers.load.pool_use import used_share
from stallscope.analyzers.load.room import AT_CAP
from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.profiler.capture import Capture

_S = 1_000_000_000
_LEAST_NS = 10 * _S  # a moment's full pool is no state
_LEAST_READINGS = 5
_MOSTLY = 0.9  # of the readings
_MOST_SURE = 0.8  # the sequence cap may hold some of the queue too: only running would tell
_NEEDED = ("waiting", "preemptions_total")


def decide_by_full_pool(capture: Capture) -> Decision | None:
    """Name capacity where the pool stays full, something waits and requests are put back."""
    samples = capture.engine_samples
    if capture.steps or capture.requests or any(s.name == "running" for s in samples):
        return None
    if len({s.engine for s in samples}) != 1:
        return None
    rows: dict[int, dict[str, float]] = {}
    for s in samples:
        rows.setdefault(s.t_ns, {})[s.name] = s.value
    told = [
        (t_ns, row, used)
        for t_ns, row in sorted(rows.items())
        if all(name in row for name in _NEEDED) and (used := used_share(row)) is not None
    ]
    if len(told) < _LEAST_READINGS or told[-1][0] - told[0][0] < _LEAST_NS:
        return None
    full = sum(row["waiting"] > 0 and used >= AT_CAP for _, row, used in told)
    put_back = told[-1][1]["preemptions_total"] - told[0][1]["preemptions_total"]
    share = full / len(told)
    if share < _MOSTLY or put_back < 1:
        return None
    reason = "the KV cache stays full while requests wait, and running ones are put back"
    quality = QUALITY["measured"]
    return Decision("capacity", share, 0.0, None, 0.0, quality, reason, limit="kv", cap=_MOST_SURE)
