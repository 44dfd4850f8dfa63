"""Several loads side by side: what more of it buys, and where that ends."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Callable, Sequence

from stallscope.analyzers.benchmark.facts import (
    in_flight,
    latency,
    tpot_s,
    trials_of,
)
from stallscope.analyzers.benchmark.knee import Point, knee_of, knee_sentence, marginal
from stallscope.analyzers.result import Sweep, SweepRow
from stallscope.profiler.capture import Capture
from stallscope.profiler.trial import Trial

_SAME_WORKLOAD = 1.1  # mean lengths that differ by less are one workload


def build_sweep(capture: Capture, classify: Callable[[int], str]) -> Sweep | None:
    """Line up the trials of a capture by load; None where there is only one.

    `classify` names the class that limits a trial, by its index.
    """
    trials = trials_of(capture)
    if len(trials) < 2:
        return None
    axis = _axis(trials)
    order = sorted(range(len(trials)), key=lambda i: (_group(trials, i), _load(trials[i], axis)))
    rows = [_row(trials[i], axis, _group(trials, i), classify(i)) for i in order]
    rows = _with_gains(rows)
    group, points = _longest(rows)
    knee, why = knee_of(points)
    named = "concurrency" if axis == "concurrency" else "requests per second"
    return Sweep(
        axis=named if axis else None,
        rows=tuple(rows),
        knee=knee,
        sentence=knee_sentence(points, knee, why, named) if axis else _NO_AXIS,
        workload=group,
    )


_NO_AXIS = "The trials offer no load that differs in concurrency or rate: there is no knee to find."


def _axis(trials: Sequence[Trial]) -> str | None:
    """Choose what the load is counted in: clients, else requests per second."""
    for name in ("rate_per_s", "concurrency"):
        if sum(getattr(t, name) is not None for t in trials) > len(trials) / 2:
            return name
    return None


def _load(trial: Trial, axis: str | None) -> float:
    value = getattr(trial, axis) if axis else None
    return float("inf") if value is None else float(value)


def _group(trials: Sequence[Trial], index: int) -> int:
    """Number the workload of a trial: the first that it is like."""
    return next(i for i, t in enumerate(trials) if i == index or _is_alike(t, trials[index]))


def _is_alike(a: Trial, b: Trial) -> bool:
    pairs = ((a.input_tokens, b.input_tokens), (a.output_tokens, b.output_tokens))
    same = all(x is None or y is None or max(x, y) <= _SAME_WORKLOAD * min(x, y) for x, y in pairs)
    return same and a.label == b.label


def _row(trial: Trial, axis: str | None, group: int, bottleneck: str) -> SweepRow:
    return SweepRow(
        source=trial.source,
        load=getattr(trial, axis) if axis else None,
        workload=group,
        input_tokens=trial.input_tokens,
        output_tokens=trial.output_tokens,
        in_flight=in_flight(trial),
        requests_per_s=trial.requests_per_s,
        output_tokens_per_s=trial.output_tokens_per_s,
        ttft_s=latency(trial, "ttft_s").typical,
        tpot_s=tpot_s(trial),
        e2e_s=latency(trial, "e2e_s").typical,
        failed=trial.failed,
        bottleneck=bottleneck,
        marginal=None,
    )


def _with_gains(rows: Sequence[SweepRow]) -> list[SweepRow]:
    """Add to each row what its load bought over the row before it, of what it added."""
    found = list(rows[:1])
    for before, row in itertools.pairwise(rows):
        gain = None
        if before.workload == row.workload:
            gain = marginal(
                (before.load, before.output_tokens_per_s), (row.load, row.output_tokens_per_s)
            )
        found.append(dataclasses.replace(row, marginal=gain))
    return found


def _longest(rows: Sequence[SweepRow]) -> tuple[int, list[Point]]:
    """Return the workload with most loads, and its points; repeats of a load are one mean."""
    best: tuple[int, list[Point]] = (0, [])
    for group in dict.fromkeys(r.workload for r in rows):
        found = _points([r for r in rows if r.workload == group])
        if len(found) > len(best[1]):
            best = (group, found)
    return best


def _points(rows: Sequence[SweepRow]) -> list[Point]:
    by_load: dict[float, list[SweepRow]] = {}
    for row in rows:
        if row.load is not None and row.output_tokens_per_s:
            by_load.setdefault(row.load, []).append(row)
    return [
        Point(
            load,
            statistics.fmean(r.output_tokens_per_s or 0.0 for r in same),
            statistics.fmean(ttfts) if (ttfts := [r.ttft_s for r in same if r.ttft_s]) else None,
        )
        for load, same in sorted(by_load.items())
    ]
