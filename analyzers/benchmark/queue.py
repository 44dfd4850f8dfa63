"""What a client can tell of a queue: TTFT holds it, and how prompts come through says a little."""

from __future__ import annotations

from stallscope.analyzers.benchmark.facts import (
    e2e_s,
    in_flight,
    judged_trial,
    latency,
    request_rate,
)
from stallscope.analyzers.load.queue_limits import Admission
from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.analyzers.words import at_least
from stallscope.profiler.capture import Capture
from stallscope.profiler.trial import Trial
from stallscope.profiler.wording import figure

BY_CLIENT = (
    "TTFT beyond what one prompt needs at the run's own rate, ÷ E2E; one engine taking prompts in "
    "one after another"
)


_ALL_AT_ONCE = 0.9  # of all requests in flight in the mean: they were sent together


def prompt_need_s(trial: Trial) -> float | None:
    """Return the most that a prompt alone can have needed.

    An engine that finishes r requests a second takes a prompt in within 1 / r, and the quickest
    TTFT holds a prompt's own time whole. With several engines side by side neither is a bound.
    """
    rate, least = request_rate(trial), latency(trial, "ttft_s").least
    if not rate or (trial.engines or 1) > 1:
        return None
    return max(1.0 / rate, least or 0.0)


def queued_share(trial: Trial) -> float | None:
    """Return the share of E2E in which requests waited at the least; None where nothing tells.

    Mean and median must both exceed the need: a cold start is no queue.
    """
    whole, need = e2e_s(trial), prompt_need_s(trial)
    ttft = latency(trial, "ttft_s")
    seen = [value for value in (ttft.mean, ttft.p50) if value is not None]
    if not whole or need is None or not seen:
        return None
    return min(1.0, max(0.0, min(seen) - need) / whole)


def waiting_share(trial: Trial) -> float | None:
    """Return the server's own mean queue over what is in flight (Little's law)."""
    flight = in_flight(trial)
    if trial.waiting is None or not flight:
        return None
    return min(1.0, trial.waiting / flight)


def burst_admission(capture: Capture) -> Admission | None:
    """Name prompts the limit where all had their first token before the first request ended.

    Then every request ran beside all others: no cap and no full pool held any back, only the
    prompts before its own.
    """
    trial = judged_trial(capture)
    if trial is None:
        return None
    last_first, first_end = latency(trial, "ttft_s").most, latency(trial, "e2e_s").least
    flight, whole = in_flight(trial), trial.duration_s
    if last_first is None or first_end is None or flight is None or not whole:
        return None
    if last_first >= first_end or flight < _ALL_AT_ONCE * (trial.completed or 0):
        return None
    source = f"the last first token came {figure(last_first)} s after sending, the first end "
    source += f"{figure(first_end)} s"
    return Admission({"prefill": 1.0}, min(1.0, last_first / whole), "derived", source)


def unseen_limit(capture: Capture) -> Decision | None:
    """Say how long requests waited, and that a client does not see at which limit."""
    trial = judged_trial(capture)
    if trial is None:
        return None
    both = ("capacity", "scheduling")
    if trial.waiting is not None:
        reason = f"{trial.waiting:.0f} of {in_flight(trial) or 0.0:.0f} requests in flight wait in "
        reason += "the server's queue, and the summary does not say at which limit"
        quality = QUALITY["derived"]
        return Decision("undetermined", 0.0, 0.0, None, 0.0, quality, reason, both)
    ttft, share = latency(trial, "ttft_s").typical or 0.0, queued_share(trial) or 0.0
    reason = (
        f"requests wait {at_least(share)} of their time or more before their first token (TTFT "
    )
    reason += (
        f"{figure(ttft)} s, a prompt alone needs at most {figure(prompt_need_s(trial) or 0.0)} s), "
    )
    reason += "and a client does not see at which limit"
    return Decision("undetermined", 0.0, 0.0, None, 0.0, QUALITY["bound"], reason, both)
