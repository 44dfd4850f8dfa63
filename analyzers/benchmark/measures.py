"""The measures of a benchmark's load."""

from __future__ import annotations

from collections.abc import Iterator

from stallscope.analyzers.benchmark.facts import judged_trial, latency, offered
from stallscope.analyzers.load.demand import Demand
from stallscope.analyzers.load.queue_limits import Admission
from stallscope.analyzers.measures import measure
from stallscope.analyzers.queue_measures import queue_wait
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure

_LITTLE = "Σ end-to-end time ÷ duration, by the client (Little's law)"


def benchmark_measures(
    capture: Capture, demand: Demand, admission: Admission | None
) -> tuple[Measure, ...]:
    """Collect what a client tells of the load; nothing of other captures."""
    return tuple(_measures(capture, demand, admission))


def _idle(capture: Capture, share: float) -> Measure:
    if any(r.end_ns is not None for r in capture.requests):
        return measure("idle_share", share, "measured", "times of each request, by the client")
    source = "1 − requests in flight: one after another they fill no more"
    return measure("idle_share", share, "bound", source, side="lower")


def _measures(capture: Capture, demand: Demand, admission: Admission | None) -> Iterator[Measure]:
    trial = judged_trial(capture)
    if trial is None:
        return
    wait = queue_wait(demand)
    if wait is not None:
        yield wait
    if demand.idle_share is not None:
        yield _idle(capture, demand.idle_share)
    if demand.in_flight is not None:
        yield measure("in_flight", demand.in_flight, "derived", _LITTLE)
    if demand.waiting is not None:
        side = None if wait is None else wait.side
        source = "the server's mean queue" if side is None else "queue share × requests in flight"
        provenance = "measured" if side is None else "bound"
        yield measure("waiting_mean", demand.waiting, provenance, source, side=side)
    for name, share in admission.ranked() if admission is not None else ():
        yield measure(f"limit_{name}", share, "derived", admission.source if admission else "")
    asked = offered(trial, capture.subject.concurrency)
    if asked is not None:
        source = "clients of the closed loop, over its waves of requests"
        yield measure("in_flight_offered", asked, "derived", source)
    if trial.rate_per_s is not None:
        yield measure("rate_offered", trial.rate_per_s, "measured", "the generator's setting")
    if trial.sent_per_s is not None:
        yield measure("rate_sent", trial.sent_per_s, "measured", "requests ÷ time of sending")
    if trial.completed is not None:
        yield measure("requests_completed", trial.completed, "measured", "the client")
    if trial.failed is not None:
        yield measure("requests_failed", trial.failed, "measured", "the client")
    whole, ttft = latency(trial, "e2e_s").typical, latency(trial, "ttft_s").typical
    if whole and ttft is not None and ttft <= whole:
        source = "(E2E − TTFT) ÷ E2E: TTFT holds the queue besides prefill"
        value = (whole - ttft) / whole
        yield measure("decode_share_client", value, "bound", source, side="lower")
