"""Preemption, seen in the gauges alone: its counter moves up to a minute late."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from stallscope.profiler.capture import EngineSample

_FULL = 0.97
_LEAST_FALLS = 2  # in a row: one end and one arrival look like one preemption


def inferred_preemption(samples: Sequence[EngineSample]) -> str | None:
    """Say that running requests went back to the queue, where only that explains the gauges.

    The pool is full, running falls and waiting rises by no more, line after line, and no prompt was
    taken in meanwhile.
    """
    engines = sorted({s.engine for s in samples})
    best = max((_longest([s for s in samples if s.engine == e]) for e in engines), default=None)
    if best is None or best[0] < _LEAST_FALLS:
        return None
    _, fell_from, fell_to, rose_from, rose_to = best
    return (
        "Running requests were preempted, by the gauges: with the KV pool full, running fell from "
        f"{fell_from:.0f} to {fell_to:.0f}, waiting rose from {rose_from:.0f} to {rose_to:.0f}, "
        "and no prompt was taken in."
    )


def _longest(samples: Sequence[EngineSample]) -> tuple[int, float, float, float, float]:
    by_time: dict[int, dict[str, float]] = {}
    for sample in samples:
        by_time.setdefault(sample.t_ns, {})[sample.name] = sample.value
    rows = [r for _, r in sorted(by_time.items()) if "running" in r and "waiting" in r]
    best = run = (0, 0.0, 0.0, 0.0, 0.0)
    for a, b in pairwise(rows):
        if not _falls(a, b):
            same = a["running"] == b["running"] and a["waiting"] == b["waiting"]
            run = run if same else (0, 0.0, 0.0, 0.0, 0.0)
            continue
        count, start, _, rise, _ = run if run[0] else (0, a["running"], 0.0, a["waiting"], 0.0)
        run = (count + 1, start, b["running"], rise, b["waiting"])
        best = max(best, run)
    return best


def _falls(a: dict[str, float], b: dict[str, float]) -> bool:
    is_full = min(a.get("kv_used_fraction", 0.0), b.get("kv_used_fraction", 0.0)) >= _FULL
    fell, rose = a["running"] - b["running"], b["waiting"] - a["waiting"]
    took = b.get("input_tokens_total", 0.0) - a.get("input_tokens_total", 0.0)
    return is_full and fell > 0 and 0 < rose <= fell and took <= 0
