"""How many requests a capture shows running, and in flight, at one moment."""

from __future__ import annotations

from stallscope.analyzers.benchmark.facts import in_flight, judged_trial
from stallscope.analyzers.benchmark.step import batch_size
from stallscope.analyzers.load.engines import moments, queued
from stallscope.profiler.capture import Capture


def most_running(capture: Capture) -> float:
    """Return the most requests that one engine ran at once: a lower bound of its cap."""
    sampled = (s.value for s in capture.engine_samples if s.name == "running")
    stepped = (
        float(s.decode_requests + s.prefill_requests if s.running is None else s.running)
        for s in capture.steps
    )
    return max(max(sampled, default=0.0), max(stepped, default=0.0))


def most_in_flight(capture: Capture) -> float:
    """Return the most requests in flight in all engines, or their mean by a client's figures."""
    trial = judged_trial(capture)
    mean = in_flight(trial) if trial is not None else None
    return max(most_sampled(capture), mean or 0.0)


def most_sampled(capture: Capture) -> float:
    """Return the most requests in flight in all engines by their gauges, 0 where there are none."""
    sampled = (
        sum(queued(v) + v["running"] for v in m.engines.values())
        for m in moments(capture.engine_samples)
    )
    return max(sampled, default=0.0)


def mean_decoding(capture: Capture) -> float | None:
    """Return how many requests a client had in decode on average, where it alone tells.

    Requests that were preempted count as in decode to their client, so that an engine's own figures
    go before this.
    """
    trial = judged_trial(capture)
    if trial is None or capture.engine_samples or capture.steps:
        return None
    return batch_size(trial)
