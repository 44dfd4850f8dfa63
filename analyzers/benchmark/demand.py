"""The load of a benchmark, from the client's side alone."""

from __future__ import annotations

from stallscope.analyzers.benchmark.facts import (
    in_flight,
    is_benchmark_only,
    judged_trial,
    latency,
    request_rate,
)
from stallscope.analyzers.benchmark.queue import BY_CLIENT, queued_share, waiting_share
from stallscope.analyzers.load.demand import Demand
from stallscope.analyzers.load.span import union_ns
from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.profiler.capture import Capture
from stallscope.profiler.trial import Trial
from stallscope.profiler.wording import counted, figure

# A generator that sends less than this share of the rate it was asked for does not keep up …
SENT_SHARE = 0.9
_AT_CAP = 0.95  # of what it may have in flight: its own cap holds it back
_LATE = 0.1  # … if its requests leave later than by this share of a request's time as well


def benchmark_demand(capture: Capture) -> Demand | None:
    """Return the load of the judged trial; None of captures that saw more than the client did."""
    trial = judged_trial(capture) if is_benchmark_only(capture) else None
    if trial is None:
        return None
    flight, of_server = in_flight(trial), waiting_share(trial)
    queued = queued_share(trial) if of_server is None else of_server
    waiting = trial.waiting
    if waiting is None and queued is not None and flight is not None:
        waiting = queued * flight  # Little's law, as the share is at the least
    return Demand(
        queued_share=queued,
        idle_share=_idle_share(capture, flight),
        in_flight=flight,
        waiting=waiting,
        waiting_grows=False,
        provenance="bound" if of_server is None else "derived",
        source=BY_CLIENT if of_server is None else "the server's mean queue ÷ requests in flight",
    )


def _idle_share(capture: Capture, flight: float | None) -> float | None:
    """Return the time with nothing in flight: exactly, where each request's times are known.

    Else at the least: requests that fill half the time one after another leave the other half.
    """
    rows = [(r.arrival_ns, r.end_ns) for r in capture.requests if r.end_ns is not None]
    length = max((end for _, end in rows), default=0) - min((a for a, _ in rows), default=0)
    if length > 0:
        return 1.0 - union_ns(rows) / length
    return None if flight is None else max(0.0, 1.0 - flight)


def late_sender(capture: Capture, load: str) -> Decision | None:
    """Tell whether the load generator kept its own schedule; a rule of open loops.

    A cap of its own on what is in flight limits nothing where the server lets these wait already.
    """
    trial = judged_trial(capture)
    if trial is None or trial.rate_per_s is None:
        return None
    if trial.sent_per_s is None:
        return None if load == "overloaded" else _held_back(trial, trial.rate_per_s)
    whole = latency(trial, "e2e_s").typical or 0.0
    is_late = trial.send_delay_s is None or trial.send_delay_s > _LATE * whole
    if trial.sent_per_s >= SENT_SHARE * trial.rate_per_s or not is_late:
        return None
    reason = (
        f"its generator sent {figure(trial.sent_per_s, 4)} of "
        f"{figure(trial.rate_per_s, 4)} requests a second"
    )
    if trial.send_delay_s is not None:
        reason += f", on average {figure(trial.send_delay_s)} s late"
    reason += "; what the server does under the whole load was not seen"
    short = 1.0 - trial.sent_per_s / trial.rate_per_s
    return Decision("client", short, 0.0, None, 0.0, QUALITY["measured"], reason, cap=0.9)


def _held_back(trial: Trial, asked: float) -> Decision | None:
    """Tell whether a generator sent less than its rate, as all it may have in flight was."""
    flight, rate = in_flight(trial), request_rate(trial)
    if trial.cap is None or flight is None or rate is None:
        return None
    if flight < _AT_CAP * trial.cap or rate >= SENT_SHARE * asked:
        return None
    reason = (
        f"its generator may have {counted(trial.cap, 'request')} in flight, {figure(flight, 4)} "
        f"were, and so it sent {figure(rate, 4)} of {figure(asked, 4)} requests a second; what the "
        "server does under the whole load was not seen"
    )
    short = 1.0 - rate / asked
    return Decision("client", short, 0.0, None, 0.0, QUALITY["derived"], reason, cap=0.9)
