"""The measures of the load, of what held the queue, and of preemption."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.load.demand import Demand
from stallscope.analyzers.load.pool_use import pool_measures
from stallscope.analyzers.load.preempted import is_least
from stallscope.analyzers.load.preemption import (
    count_preemptions,
    observe_preemption,
    recomputed_tokens,
)
from stallscope.analyzers.load.put_back import put_back
from stallscope.analyzers.load.queue_limits import Admission
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.measures import measure
from stallscope.analyzers.step.budget import StepCost
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import BoundSide, Measure

_LOGGED_NOW_AND_THEN = "the sum that the engine logs at one preemption in fifty"


def queue_wait(demand: Demand) -> Measure | None:
    """The queued share: a lower bound where the time of preempted requests is not known."""
    if demand.queued_share is None:
        return None
    side: BoundSide | None = "lower" if demand.provenance == "bound" else None
    name, value = "queue_wait_share", demand.queued_share
    return measure(name, value, demand.provenance, demand.source, side=side)


def _load(demand: Demand) -> Iterator[Measure]:
    wait = queue_wait(demand)
    if wait is not None:
        yield wait
    values = {"idle_share": demand.idle_share, "in_flight": demand.in_flight}
    for name, value in values.items():
        if value is not None:
            # Only how long requests waited can be a bound; when they came and went is known.
            provenance = "measured" if demand.provenance == "bound" else demand.provenance
            yield measure(name, value, provenance, demand.source)
    if demand.waiting is not None and wait is not None:
        source, side = demand.source, wait.side
        yield measure("waiting_mean", demand.waiting, demand.provenance, source, side=side)
    if demand.step_wait_share is not None:
        source = "arrival to the start of the next step, over the requests' time"
        yield measure("step_wait_share", demand.step_wait_share, "derived", source)


def _held(admission: Admission) -> Iterator[Measure]:
    for name, share in admission.ranked():
        yield measure(f"limit_{name}", share, admission.provenance, admission.source)
    if admission.in_flight:
        source = f"gauges of {len(admission.in_flight)} engines"
        mean = statistics.fmean(admission.in_flight)
        yield measure("in_flight_fullest", admission.in_flight[0], "derived", source)
        yield measure("in_flight_mean_engine", mean, "derived", source)


def _put_back(capture: Capture) -> Iterator[Measure]:
    falls = put_back(capture.engine_samples)
    if not falls:
        return
    number = sum(f.requests for f in falls)
    source = "running fell by more than ended, waiting rose, and the KV pool was full"
    if all(f.is_least for f in falls):
        yield measure("preemptions_inferred", number, "bound", source, side="lower")
    else:
        source = "running fell, waiting rose, no prompt was taken in, and the KV pool was full"
        yield measure("preemptions_inferred", number, "derived", source)


def _counted_by(capture: Capture) -> str:
    if any(r.preemptions is not None for r in capture.requests):
        return "request rows"
    if any(e.kind == "preempt" for e in capture.events):
        return _LOGGED_NOW_AND_THEN if is_least(capture.events) else "preempt events"
    return "the engine's counter, which may move only when a preempted request resumes"


def _preemption(
    capture: Capture, costs: Sequence[StepCost], cost: CostModel | None, span: Span
) -> Iterator[Measure]:
    count = count_preemptions(capture)
    if count is None:
        return
    source = _counted_by(capture)
    if source is _LOGGED_NOW_AND_THEN:
        yield measure("preemptions", count, "bound", source, side="lower")
    else:
        yield measure("preemptions", count, "measured", source)
    again = recomputed_tokens(capture, costs, span) if count else None
    if again is not None:
        source = "prefilled tokens − prompts of the requests that were admitted"
        yield measure("recomputed_tokens", again, "derived", source)
    found = observe_preemption(capture, costs, cost, span)
    if found is not None and found.recompute_share is not None:
        source = "recomputed ÷ all prefilled tokens × prefill's share of step time"
        yield measure("recompute_share", found.recompute_share, "derived", source)
    if found is not None and found.wait_share is not None:
        source = "Σ time preempted ÷ Σ time in the system"
        yield measure("preempted_share", found.wait_share, "measured", source)


def queue_measures(
    capture: Capture,
    costs: Sequence[StepCost],
    *,
    cost: CostModel | None,
    demand: Demand,
    admission: Admission | None,
    span: Span,
) -> tuple[Measure, ...]:
    """Collect what a capture tells of load, queue and preemption."""
    return (
        *_load(demand),
        *(_held(admission) if admission is not None else ()),
        *_preemption(capture, costs, cost, span),
        *_put_back(capture),
        *pool_measures(capture, span),
    )
