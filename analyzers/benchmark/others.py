"""More in flight at the server than a benchmark's clients can have sent."""

from __future__ import annotations

from stallscope.analyzers.benchmark.facts import client_trial
from stallscope.analyzers.stated.observed import most_sampled
from stallscope.profiler.capture import Capture


def others_note(capture: Capture) -> tuple[str, ...]:
    """Say that others were served too, or that sources are of different runs.

    A request that its client has left may still be counted for a moment: a tenth and one more pass.
    """
    trial, flight = client_trial(capture), most_sampled(capture)
    if trial is None or trial.concurrency is None or flight <= 1.1 * trial.concurrency + 1:
        return ()
    return (
        f"The benchmark's {trial.concurrency:,} clients, with one request each, cannot have sent "
        f"what the server had: up to {flight:,.0f} requests were in flight. Others were served "
        "too, or these are of another run; then the benchmark's latencies are not of this load.",
    )
