"""Stretches in which an engine let nobody in: what a cap on running requests looks like."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from stallscope.profiler.capture import EngineSample

_LEAST_STEPS = 5  # a long prompt in chunks keeps the next one out for a step or two
_FULL = 0.95

Moment = dict[str, float]  # one engine at one time, by name


def running_while_held(samples: Sequence[EngineSample]) -> list[float]:
    """Return how many ran in each interval in which requests waited and none was let in.

    Several steps passed, as tokens tell; no prompt was taken in, and the KV pool had room.
    """
    found = []
    for _, rows in groupby(sorted(samples, key=lambda s: (s.engine, s.t_ns)), lambda s: s.engine):
        by_time: dict[int, Moment] = {}
        for sample in rows:
            by_time.setdefault(sample.t_ns, {})[sample.name] = sample.value
        found += [a["running"] for a, b in pairwise(by_time.values()) if _is_held(a, b)]
    return found


def _is_held(a: Moment, b: Moment) -> bool:
    needed = ("running", "waiting", "kv_used_fraction", "input_tokens_total", "output_tokens_total")
    if any(name not in moment for name in needed for moment in (a, b)):
        return False
    is_same = 0 < a["running"] == b["running"] and min(a["waiting"], b["waiting"]) > 0
    is_roomy = max(a["kv_used_fraction"], b["kv_used_fraction"]) < _FULL
    made = b["output_tokens_total"] - a["output_tokens_total"]
    is_closed = a["input_tokens_total"] == b["input_tokens_total"]
    return is_same and is_roomy and is_closed and made >= _LEAST_STEPS * a["running"]
