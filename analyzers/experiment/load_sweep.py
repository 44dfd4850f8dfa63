"""Runs that differ in their load: not an experiment on a limit, but a knee and what more buys."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from stallscope.analyzers.benchmark.knee import Point, knee_of, knee_sentence, marginal
from stallscope.analyzers.experiment.groups import groups_of
from stallscope.analyzers.experiment.result import Conclusion, Finding, Group, Run

RATE = "output_tokens_per_s"
_CLIENTS = (
    *("concurrency", "max_concurrency", "concurrent_requests", "concurrent", "num_concurrent"),
    *("clients", "users", "concurrent_users", "num_clients", "num_users", "parallel"),
)
_BATCHES = ("batch", "batch_size", "bs")
_ARRIVALS = ("request_rate", "rate_per_s", "qps", "rps", "offered_rate")
_AMOUNTS = ("num_prompts", "num_requests", "requests", "prompts")  # grows with the load, if at all
_TTFT = ("ttft_s", "mean_ttft_s", "median_ttft_s", "ttft_p50_s", "p50_ttft_s", "avg_ttft_s")

_MOST_TOLD = 4  # groups in the answer; what follows the load is told of all
_MORE = (
    "A table does not tell what limits there: give diagnose the server's log, or the benchmark's "
    "file, of that load."
)


def load_among(apart: Sequence[str]) -> str | None:
    """Return the load where it alone sets runs apart, or with how many requests were sent."""
    rest = [name for name in apart if name not in _AMOUNTS]
    return rest[0] if len(rest) == 1 and _axis(rest[0]) is not None else None


def judge_loads(
    runs: Sequence[Run], name: str, figure: str | None
) -> tuple[tuple[Group, ...], tuple[Finding, ...], Conclusion] | None:
    """Find the knee of each group of runs alike but for the load; None where there is none."""
    axis = _axis(name)
    if axis is None or figure != RATE:
        return None
    alike = [_without_amounts(run) for run in runs]
    lined = [(group, _points(alike, group, name)) for group in groups_of(alike, name, RATE)]
    lined = [(group, points) for group, points in lined if len(points) > 1]
    if not lined:
        return None
    told, has_knee = [], False
    for group, points in lined[:_MOST_TOLD]:
        knee, why = knee_of(points)
        has_knee |= knee is not None
        where = f"At {group.label}: " if group.label else ""
        told.append(f"{where}{knee_sentence(points, knee, why, axis)}")
    if has_knee:
        told.append(_MORE)
    findings = tuple(Finding(group.label, _gains(points), None) for group, points in lined)
    groups = tuple(group for group, _ in lined)
    return groups, findings, Conclusion("undetermined", 0.0, " ".join(told))


def _axis(name: str) -> str | None:
    if name in _CLIENTS:
        return "concurrency"
    if name in _BATCHES:
        return "batch"
    return "requests per second" if name in _ARRIVALS else None


def _without_amounts(run: Run) -> Run:
    kept = {name: value for name, value in run.settings.items() if name not in _AMOUNTS}
    return replace(run, settings=kept)


def _points(runs: Sequence[Run], group: Group, name: str) -> list[Point]:
    """Order a group by its load; "inf" and other words are no load that can be lined up."""
    loads = [
        (load, rate)
        for load, rate in zip(group.values, group.shown, strict=True)
        if isinstance(load, float) and load > 0
    ]
    return [Point(load, rate, _ttft(runs, group, name, load)) for load, rate in sorted(loads)]


def _ttft(runs: Sequence[Run], group: Group, name: str, load: float) -> float | None:
    """Return the TTFT of a load; None where several runs have that load."""
    at = [run for run in runs if run.settings.get(name) == load]
    found = [run.figures[t].value for run in at for t in _TTFT if t in run.figures]
    return found[0] if len(at) == 1 and found else None


def _gains(points: Sequence[Point]) -> str:
    told = [
        f"{gain:.2f} from {a.load:g} to {b.load:g}"
        for a, b in itertools.pairwise(points)
        if (gain := marginal((a.load, a.tokens_per_s), (b.load, b.tokens_per_s))) is not None
    ]
    return f"growth of tokens/s over growth of the load (1 is linear): {', '.join(told)}"
