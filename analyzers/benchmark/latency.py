"""Latency and throughput as the client measured them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple

from stallscope.analyzers.benchmark.facts import client_trial, is_benchmark_only, judged_trial
from stallscope.analyzers.benchmark.others import others_note
from stallscope.analyzers.load.latency import latencies, throughput
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.result import Distribution, Throughput
from stallscope.analyzers.words import both
from stallscope.profiler.capture import Capture
from stallscope.profiler.wording import figure


def client_latencies(capture: Capture) -> Mapping[str, Distribution]:
    """Return the trial's distributions, and from rows what no trial tells."""
    trial = client_trial(capture)
    told = trial.latency if trial is not None else {}
    return {
        **latencies(capture),
        **{m: Distribution(s.mean, s.p50, s.p90, s.p99, s.n) for m, s in told.items()},
    }


_CALLED = {
    "ttft_s": "time to first token",
    "tpot_s": "time per output token",
    "e2e_s": "time of a whole request",
}


def median_note(capture: Capture) -> tuple[str, ...]:
    """Say where a client's results tell a median only, which then stands for the mean."""
    trial = judged_trial(capture)
    told = trial.latency if trial is not None else {}
    names = [
        called
        for name, called in _CALLED.items()
        if name in told and told[name].mean is None and told[name].p50 is not None
    ]
    if not names:
        return ()
    stand = "its median stands for it" if len(names) == 1 else "medians stand for them"
    return (f"The results tell no mean of the {both(names)}: {stand}.",)


def client_throughput(capture: Capture, span: Span | None) -> Throughput:
    """Return the trial's rates, which count every token of its whole run; else those of the rows.

    Of steps that were recorded, and where others were served too, the rows tell more.
    """
    trial, of_rows = judged_trial(capture), throughput(capture, span)
    if trial is None or capture.steps or others_note(capture):
        return of_rows
    told = Throughput(trial.input_tokens_per_s, trial.output_tokens_per_s, trial.requests_per_s)
    if is_benchmark_only(capture):
        return told
    rates = zip(astuple(told), astuple(of_rows), strict=True)
    return Throughput(*(own if own is not None else other for own, other in rates))


_APART = 0.1  # of the larger: by less than this both count the same
_RATES = ("input tokens/s", "output tokens/s", "requests/s")


def rates_note(capture: Capture, span: Span | None) -> tuple[str, ...]:
    """Say where the server's samples and its client's results give other rates."""
    trial, of_rows = client_trial(capture), throughput(capture, span)
    if trial is None or is_benchmark_only(capture) or capture.steps:
        return ()
    told = (trial.input_tokens_per_s, trial.output_tokens_per_s, trial.requests_per_s)
    apart = [
        (name, own, other)
        for name, own, other in zip(_RATES, told, astuple(of_rows), strict=True)
        if own is not None and other is not None and abs(own - other) > _APART * max(own, other)
    ]
    if not apart:
        return ()
    by_client = both([f"{figure(own, 4)} {name}" for name, own, _ in apart])
    by_server = both([f"{figure(other, 4)}" for _, _, other in apart])
    shown = "the client's" if client_throughput(capture, span) != of_rows else "the server's"
    return (
        f"The benchmark's client counted {by_client} over its run, the server's samples make "
        f"{by_server} of the time that they tell of: shown are {shown}.",
    )
