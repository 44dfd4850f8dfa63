"""Whether more was offered than arrived: a server sees only what arrives."""

from __future__ import annotations

from stallscope.analyzers.load.demand import Demand
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import NotObservable


def unseen_offer(
    capture: Capture, load: str, demand: Demand, t: Thresholds
) -> tuple[NotObservable, ...]:
    """Name the offered load as not observable where it could change the answer.

    That is where nothing waits though something came: clients that wait for their own pool, or for
    the last answer, look the same as few clients.
    """
    is_known = capture.subject.concurrency is not None or capture.subject.rate_per_s is not None
    if is_known or not capture.engine_samples or capture.requests or load == "idle":
        return ()
    if demand.held_share is None or demand.held_share >= t.nothing_waits:
        return ()
    flight = (
        ""
        if demand.in_flight is None
        else f" ({demand.count(demand.in_flight)} in flight {demand.when})"
    )
    return (
        NotObservable(
            "the offered load",
            f"nothing waits at the server{flight}, and whether its clients meant to send more "
            "does not show there",
            "add --concurrency N, or give the load generator's results beside it",
        ),
    )
