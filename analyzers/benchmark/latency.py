"""Latency and throughput as the client measured them."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.benchmark.facts import client_trial, is_benchmark_only, judged_trial
from stallscope.analyzers.load.latency import latencies, throughput
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.result import Distribution, Throughput
from stallscope.analyzers.words import both
from stallscope.profiler.capture import Capture


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
    """Return the trial's rates where results are all there is, else those of the rows."""
    trial = judged_trial(capture) if is_benchmark_only(capture) else None
    if trial is None:
        return throughput(capture, span)
    return Throughput(trial.input_tokens_per_s, trial.output_tokens_per_s, trial.requests_per_s)
