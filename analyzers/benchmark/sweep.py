"""Several loads side by side: what more of it buys, and where that ends."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stallscope.analyzers.benchmark.facts import (
    in_flight,
    latency,
    tpot_s,
    trials_of,
)
from stallscope.analyzers.result import Sweep, SweepRow
from stallscope.profiler.capture import Capture
from stallscope.profiler.trial import Trial
from stallscope.profiler.wording import figure

# Added load buys at least this share of its own proportion in tokens per second, or it is past the
# knee: doubling the load must raise throughput by half.
MARGINAL = 0.5
# TTFT takes off where it grows more than this many times as fast as the load.
TAKE_OFF = 2.0
_SAME_WORKLOAD = 1.1  # mean lengths that differ by less are one workload
_FEWEST = 3  # loads, for a knee to lie between


@dataclass(frozen=True, slots=True)
class _Point:
    load: float
    tokens_per_s: float
    ttft_s: float | None


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
    knee, why = _knee(points)
    named = "concurrency" if axis == "concurrency" else "requests per second"
    return Sweep(
        axis=named if axis else None,
        rows=tuple(rows),
        knee=knee,
        sentence=_sentence(points, knee, why, named) if axis else _NO_AXIS,
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
            gain = _marginal(
                (before.load, before.output_tokens_per_s), (row.load, row.output_tokens_per_s)
            )
        found.append(dataclasses.replace(row, marginal=gain))
    return found


def _marginal(
    a: tuple[float | None, float | None], b: tuple[float | None, float | None]
) -> float | None:
    """Return relative growth of tokens per second over relative growth of load."""
    (load, tokens), (more, after) = a, b
    if not load or not tokens or more is None or after is None or more <= load:
        return None
    return (after / tokens - 1.0) / (more / load - 1.0)


def _longest(rows: Sequence[SweepRow]) -> tuple[int, list[_Point]]:
    """Return the workload with most loads, and its points; repeats of a load are one mean."""
    best: tuple[int, list[_Point]] = (0, [])
    for group in dict.fromkeys(r.workload for r in rows):
        found = _points([r for r in rows if r.workload == group])
        if len(found) > len(best[1]):
            best = (group, found)
    return best


def _points(rows: Sequence[SweepRow]) -> list[_Point]:
    by_load: dict[float, list[SweepRow]] = {}
    for row in rows:
        if row.load is not None and row.output_tokens_per_s:
            by_load.setdefault(row.load, []).append(row)
    return [
        _Point(
            load,
            statistics.fmean(r.output_tokens_per_s or 0.0 for r in same),
            statistics.fmean(ttfts) if (ttfts := [r.ttft_s for r in same if r.ttft_s]) else None,
        )
        for load, same in sorted(by_load.items())
    ]


def _knee(points: Sequence[_Point]) -> tuple[float | None, str]:
    """Return the last load before throughput flattens or TTFT takes off, and which it was."""
    if len(points) < _FEWEST:
        return None, "few"
    for a, b in itertools.pairwise(points):
        gain = _marginal((a.load, a.tokens_per_s), (b.load, b.tokens_per_s))
        if gain is not None and gain < MARGINAL:
            return a.load, "flat"
        if a.ttft_s and b.ttft_s and b.ttft_s / a.ttft_s > TAKE_OFF * b.load / a.load:
            return a.load, "ttft"
    return None, "open"


def _sentence(points: Sequence[_Point], knee: float | None, why: str, axis: str) -> str:
    if why == "few":
        return f"Fewer than {_FEWEST} loads of one workload tell no knee: measure more of them."
    if knee is None:
        last = points[-1]
        return (
            f"No knee up to {axis} {figure(last.load, 4)}: {figure(last.tokens_per_s)} output "
            "tokens/s still grow nearly with the load."
        )
    at = next(p for p in points if p.load == knee)
    after = points[points.index(at) + 1]
    text = f"The knee is at {axis} {figure(knee, 4)} with {figure(at.tokens_per_s)} output tokens/s"
    if why == "ttft":
        return f"{text}: at {figure(after.load, 4)} TTFT takes off{_ttft_text(at, after)}."
    change = after.tokens_per_s / at.tokens_per_s - 1.0
    added = after.load / at.load - 1.0
    return (
        f"{text}: {100 * added:.0f} % more load after it buys {100 * change:+.0f} % tokens/s"
        f"{_ttft_text(at, after).replace(', from', ', and TTFT goes from')}."
    )


def _ttft_text(at: _Point, after: _Point) -> str:
    if not at.ttft_s or not after.ttft_s:
        return ""
    return f", from {figure(at.ttft_s)} to {figure(after.ttft_s)} s"
