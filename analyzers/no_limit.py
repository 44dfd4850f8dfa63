"""Decisions where the engine limits nothing: there is room, or less arrives than was meant."""

from __future__ import annotations

from stallscope.analyzers.load.demand import Demand
from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import percent

_BEGUN = 0.5  # the confidence: the next reading may tell another story


def with_room(demand: Demand, t: Thresholds) -> Decision:
    """Decide a span in which mostly nothing was in flight."""
    if demand.queued_share is None:
        return _idle_device(demand)
    idle, queued, held = demand.idle_share or 0.0, demand.queued_share, demand.held_share
    reason = f"nothing was in flight {percent(idle)} of the time"
    if demand.is_moment:
        reason = "nothing was in flight at the one moment that was read"
    if demand.at_end is not None:
        return _just_begun(*demand.at_end, QUALITY[demand.provenance])
    if queued < t.nothing_waits:
        reason += " and nothing waited"
    elif (held or 0.0) < t.nothing_waits:
        reason += ", and requests waited for no more than the step that ran when they came"
    else:
        reason += f"; in the rest, requests waited {percent(queued)} of their time"
    return Decision("none", idle, 1.0 - idle, None, 0.0, QUALITY[demand.provenance], reason)


def _just_begun(running: float, waiting: float, quality: float) -> Decision:
    """Decide where requests came as the last was read: what limits them, nobody saw."""
    reason = (
        f"nothing was in flight until the last reading, when {running:.0f} ran and {waiting:.0f} "
        "waited; what limits those was not seen"
    )
    return Decision("none", 1.0, 0.0, None, 0.0, quality, reason, cap=_BEGUN)


def _idle_device(demand: Demand) -> Decision:
    idle = demand.idle_share or 0.0
    reason = f"the GPU idled in {percent(idle)} of the samples; what was asked of it is not known"
    return Decision("none", idle, 0.0, None, 0.0, QUALITY[demand.provenance], reason, cap=0.8)


def by_client(demand: Demand, offered: float) -> Decision:
    """Decide a span in which far fewer clients than offer the load had a request in flight."""
    reason = f"{demand.count(demand.in_flight)} of {offered:.0f} clients had a request in flight "
    reason += f"{demand.when}, and nothing waited"
    arrived = (demand.in_flight or 0.0) / offered
    quality = QUALITY[demand.provenance]
    return Decision("client", 1.0 - arrived, arrived, None, 0.0, quality, reason)
