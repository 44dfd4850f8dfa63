"""Which load of several a verdict is about, and whether it lies past the knee."""

from __future__ import annotations

from stallscope.analyzers.benchmark.facts import judged_trial, trials_of
from stallscope.analyzers.result import Sweep, SweepRow
from stallscope.profiler.capture import Capture
from stallscope.profiler.trial import Trial
from stallscope.profiler.wording import counted, figure


def sweep_note(capture: Capture, sweep: Sweep | None) -> tuple[str, ...]:
    """Say which of several trials the verdict is about, and whether it lies past the knee."""
    trials, chosen = trials_of(capture), judged_trial(capture)
    if len(trials) < 2 or chosen is None:
        return ()
    at = "the one"
    if capture.subject.concurrency is not None:
        at = f"concurrency {capture.subject.concurrency}, the one"
    elif chosen.rate_per_s is not None:
        at = f"{counted(chosen.rate_per_s, 'request')} per second, the one"
    past = "" if sweep is None else _past_knee(sweep, chosen)
    return (
        f"The verdict and all figures are of {at} with most tokens/s of {len(trials)} trials "
        f"({chosen.source}){past}.",
    )


def _past_knee(sweep: Sweep, chosen: Trial) -> str:
    """Say that a load lies past the knee, and what it brings and costs over the load there."""
    rows = [r for r in sweep.rows if r.workload == sweep.workload and r.load is not None]
    at = next((r for r in rows if r.load == sweep.knee), None)
    row = next((r for r in rows if _is_of(r, chosen)), None)
    if at is None or row is None or (row.load or 0.0) <= (at.load or 0.0):
        return ""
    said = f"; that is past the knee at {sweep.axis} {at.load:g}"
    if at.output_tokens_per_s and row.output_tokens_per_s:
        more = row.output_tokens_per_s / at.output_tokens_per_s - 1.0
        said += f": {more * 100:+.0f} % tokens/s over it"
        if at.ttft_s and row.ttft_s:
            said += f", with a TTFT of {figure(row.ttft_s)} instead of {figure(at.ttft_s)} s"
    return said


def _is_of(row: SweepRow, trial: Trial) -> bool:
    same = row.output_tokens_per_s == trial.output_tokens_per_s
    return same and row.source == trial.source and row.requests_per_s == trial.requests_per_s
