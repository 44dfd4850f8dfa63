"""Waiting in front of the server: first tokens that came to clients later than it made them."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.analyzers.benchmark.facts import e2e_s, judged_trial, latency
from stallscope.analyzers.load.demand import Demand
from stallscope.analyzers.load.engine_latency import engine_latencies
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.measures import measure
from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure

_TIMES = 2.0  # the client's TTFT over the server's: less may be the network, or other requests
_LEAST_S = 0.1
_LEAST_COUNT = 5  # of first tokens that the server counted


@dataclass(frozen=True, slots=True)
class InFront:
    """Mean TTFT by the clients' clocks and by the server's own, and of a whole request."""

    client_s: float
    server_s: float
    whole_s: float

    @property
    def seconds(self) -> float:
        """What passed before the server began to count."""
        return self.client_s - self.server_s

    @property
    def share(self) -> float:
        """Its part of the clients' time."""
        return self.seconds / self.whole_s

    @property
    def sentence(self) -> str:
        """Say it, and what it may be."""
        return (
            f"Clients waited {self.client_s:.3g} s for a first token, the server's own count is "
            f"{self.server_s:.3g} s: {self.seconds:.3g} s passed in front of it, in the load "
            "generator, a proxy or the server's frontend."
        )


def observe_in_front(capture: Capture, span: Span) -> InFront | None:
    """Return what clients waited beyond the server's own TTFT; None where it is little, or blind.

    Both are means over one time, as joined sources are cut to the benchmark's.
    """
    trial = judged_trial(capture)
    server = engine_latencies(capture, span).get("ttft_s")
    if trial is None or server is None or server.mean is None or (server.n or 0) < _LEAST_COUNT:
        return None
    client_s, whole_s = latency(trial, "ttft_s").mean, e2e_s(trial)
    if client_s is None or not whole_s or client_s > whole_s:
        return None
    found = InFront(client_s, server.mean, whole_s)
    is_much = client_s >= _TIMES * found.server_s and found.seconds >= _LEAST_S
    return found if is_much else None


def in_front_measures(capture: Capture, span: Span) -> tuple[Measure, ...]:
    """Return how long requests waited in front of the server."""
    found = observe_in_front(capture, span)
    if found is None:
        return ()
    source = f"TTFT of clients {found.client_s:.3g} s − of the server {found.server_s:.3g} s"
    return (measure("ttft_in_front", found.seconds, "derived", source),)


def in_front_note(capture: Capture, span: Span) -> tuple[str, ...]:
    """Say it, whatever the verdict is."""
    found = observe_in_front(capture, span)
    return () if found is None else (found.sentence,)


def decide_in_front(capture: Capture, demand: Demand, span: Span, t: Thresholds) -> Decision | None:
    """Leave it open between host and client, where requests wait outside and not inside."""
    found = observe_in_front(capture, span)
    if found is None or found.share < t.queue_wait_share:
        return None
    if demand.held_share is None or demand.held_share >= t.nothing_waits:
        return None
    reason = (
        f"requests wait {percent(found.share)} of their time in front of the server, whose own "
        "queue is empty"
    )
    both = ("host", "client")
    return Decision("undetermined", found.share, 0.0, None, 0.0, QUALITY["derived"], reason, both)
