"""Figures that a verdict compared and no other measure tells."""

from __future__ import annotations

from collections.abc import Iterator

from stallscope.analyzers.benchmark.facts import is_benchmark_only
from stallscope.analyzers.judge import Judgement, offered_concurrency
from stallscope.analyzers.load.standstill import standstill_share
from stallscope.analyzers.load.weights_read import weights_share
from stallscope.analyzers.measures import measure
from stallscope.analyzers.prepared import Run
from stallscope.analyzers.step.clocks import clock_shares
from stallscope.profiler.evidence import Measure


def decision_measures(run: Run, judgement: Judgement) -> Iterator[Measure]:
    """Yield what was offered, the worst engine's queue, standing still, and the clocks."""
    capture, worst = run.capture, judgement.demand.worst_engine_share
    asked = offered_concurrency(capture)
    if asked is not None and not is_benchmark_only(capture):
        yield measure("in_flight_offered", asked, "measured", "the clients, as stated")
    if worst is not None:
        source = "gauges of each engine (Little's law)"
        yield measure("queue_wait_share_worst", worst, "derived", source)
    stood = standstill_share(capture.engine_samples, run.span)
    if stood > 0:
        source = "requests there, and neither a token counted nor KV use changed"
        yield measure("standstill_share", stood, "derived", source)
    read = None
    if judgement.branch == "samples" and run.cost is not None:
        read = weights_share(capture, run.cost, run.span)
    if read is not None:
        source = "weight bytes × steps by the gauges ÷ (time of decode alone × bandwidth)"
        yield measure("weights_read_share", read, "bound", source, side="lower")
    for name, value in clock_shares(capture).items():
        source = f"mean {name}_clock_hz ÷ highest {name}_clock_max_hz"
        yield measure(f"{name}_clock_share", value, "derived", source)
