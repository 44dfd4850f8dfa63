"""A run over time: its windows, the stretches they make up, and the changes between these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from stallscope.analyzers.benchmark.facts import is_benchmark_only
from stallscope.analyzers.cost.work import of_phases
from stallscope.analyzers.limits import PHASES
from stallscope.analyzers.over_time import tracks
from stallscope.analyzers.over_time.points import find
from stallscope.analyzers.over_time.track import Track
from stallscope.analyzers.over_time.windows import judge_windows
from stallscope.analyzers.prepared import Run
from stallscope.analyzers.result import Change, Window


@dataclass(frozen=True, slots=True)
class OverTime:
    """Windows as judged, stretches of one answer that figures tell apart, and what changes."""

    windows: tuple[Window, ...]
    stretches: tuple[Window, ...]
    changes: tuple[Change, ...]


def watch(run: Run) -> OverTime:
    """Judge windows; the results of a benchmark are means over all of it.

    A capture that cannot answer has no changes either.
    """
    if is_benchmark_only(run.capture):
        return OverTime((), (), ())
    windows = judge_windows(
        run.capture,
        run.costs,
        cost=run.cost,
        missing=run.why_no_budget,
        span=run.span,
        t=run.thresholds,
    )
    if run.checked.decision is not None:
        return OverTime(windows, (), ())
    stretches, changes = find(windows, lambda: tracks.of_run(run.capture, run.costs, run.span))
    both = (*changes, *_of_phases(run, windows))
    return OverTime(windows, stretches, tuple(sorted(both, key=attrgetter("at_s"))))


def _of_phases(run: Run, windows: Sequence[Window]) -> Iterator[Change]:
    """Yield the changes in each phase's own steps, where a run has several phases."""
    found = {phase: tuple(_windows_of(windows, phase)) for phase in PHASES}
    if sum(1 for rows in found.values() if rows) < 2:
        return
    for phase, rows in found.items():
        yield from find(rows, partial(_tracks, run, phase), phase)[1]


def _tracks(run: Run, phase: str) -> tuple[Track, ...]:
    return tuple(tracks.of_steps(of_phases(run.costs, phase), run.span))


def _windows_of(windows: Sequence[Window], phase: str) -> Iterator[Window]:
    for window in windows:
        for own in window.phases:
            if own.phase == phase:
                yield Window(window.from_s, window.to_s, own.bottleneck, "served")
