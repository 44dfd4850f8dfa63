"""Waiting in front of the server: first tokens that came to clients later than it made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stallscope.analyzers.benchmark.facts import e2e_s, judged_trial, latency
from stallscope.analyzers.load.demand import Demand
from stallscope.analyzers.load.engine_latency import engine_latencies
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.measures import measure
from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import FRONTEND_CPU, Capture
from stallscope.profiler.evidence import Measure
from stallscope.profiler.wording import counted, figure

_TIMES = 2.0  # the client's TTFT over the server's: less may be the network, or other requests
_LEAST_S = 0.1
_LEAST_COUNT = 5  # of first tokens that the server counted
# Of one core, by the process that takes requests in: Python does no more at a time, and what it
# hands to threads comes on top.
CORE_FULL = 0.9
CORE_AT_REST = 0.5  # of one core: what has half of its time left is not what requests wait for
_MOST_SURE = 0.75
_LEAST_SURE = 0.6  # a proxy, or a process that prepares inputs apart, may be what they wait for


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
            f"Clients waited {figure(self.client_s)} s for a first token, the server's own count "
            f"is {figure(self.server_s)} s: {figure(self.seconds)} s passed in front of it, in the "
            "load generator, a proxy or the server's frontend."
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


def frontend_cores(capture: Capture, span: Span) -> float | None:
    """Return the CPU cores that the servers' own processes used, at the most; None if untold."""
    cores = []
    for engine in {s.engine for s in capture.engine_samples if s.name == FRONTEND_CPU}:
        rows = sorted(
            (s.t_ns, s.value)
            for s in capture.engine_samples
            if s.engine == engine
            and s.name == FRONTEND_CPU
            and span.start_ns <= s.t_ns <= span.end_ns
        )
        if len(rows) > 1 and rows[-1][0] > rows[0][0]:
            cores.append((rows[-1][1] - rows[0][1]) / ((rows[-1][0] - rows[0][0]) * 1e-9))
    return max(cores, default=None)


def in_front_measures(capture: Capture, span: Span) -> tuple[Measure, ...]:
    """Return how long requests waited in front of the server, and how busy its frontend was."""
    found = observe_in_front(capture, span)
    if found is None:
        return ()
    source = (
        f"TTFT of clients {figure(found.client_s)} s − of the server {figure(found.server_s)} s"
    )
    waited = measure("ttft_in_front", found.seconds, "derived", source)
    share = measure("in_front_share", found.share, "derived", f"{source}, ÷ a request's time")
    cores = frontend_cores(capture, span)
    if cores is None:
        return (waited, share)
    source = "process_cpu_seconds_total of the process that serves /metrics, over time"
    return (waited, share, measure("frontend_cores", cores, "measured", source))


def in_front_note(capture: Capture, span: Span) -> tuple[str, ...]:
    """Say it, whatever the verdict is."""
    found = observe_in_front(capture, span)
    return () if found is None else (found.sentence,)


def decide_in_front(capture: Capture, demand: Demand, span: Span, t: Thresholds) -> Decision | None:
    """Name what keeps requests outside of a server whose own queue is empty.

    The host where the frontend's core is full, the client where it rests; between the two, or where
    nothing tells of that core, it stays open.
    """
    found = observe_in_front(capture, span)
    if found is None or found.share < t.queue_wait_share:
        return None
    if demand.held_share is None or demand.held_share >= t.nothing_waits:
        return None
    reason = (
        f"requests wait {percent(found.share)} of their time in front of the server, whose own "
        "queue is empty"
    )
    quality, cores = QUALITY["derived"], frontend_cores(capture, span)
    if cores is not None and cores >= CORE_FULL:
        reason += f", while the process that takes them in uses {cores:.1f} CPU cores: "
        reason += "what it does to each (images, templates, tokens) does not keep up"
        return Decision("host", found.share, 0.0, None, 0.0, quality, reason, cap=_MOST_SURE)
    if cores is not None:
        reason += f"; the process that takes them in uses {counted(cores, 'CPU core')} meanwhile"
    if cores is not None and cores < CORE_AT_REST:
        reason += ", so they wait in the load generator or on the way"
        return Decision("client", found.share, 0.0, None, 0.0, quality, reason, cap=_LEAST_SURE)
    both = ("host", "client")
    return Decision("undetermined", found.share, 0.0, None, 0.0, quality, reason, both)


def keeps_up(found: Mapping[str, Measure], t: Thresholds) -> bool:
    """Tell whether the frontend had time left, or nothing waited for it, as far as was seen."""
    share, cores = found.get("in_front_share"), found.get("frontend_cores")
    if share is None or cores is None:
        return True
    return share.value < t.queue_wait_share or cores.value < CORE_FULL
