"""The trials of a benchmark in a capture, and what follows from one by arithmetic."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import Capture
from stallscope.profiler.trial import Spread, Trial, trials_from_json


def trials_of(capture: Capture) -> tuple[Trial, ...]:
    """Return all trials; none of another capture."""
    return trials_from_json(_meta(capture).get("trials"))


def judged_trial(capture: Capture) -> Trial | None:
    """Return the trial that the capture's verdict is about."""
    return _judged(_meta(capture))


def client_trial(capture: Capture) -> Trial | None:
    """Return the trial that is judged, else the one that was printed into the server's log."""
    printed = capture.meta.get("printed_benchmark")
    return judged_trial(capture) or _judged(printed if isinstance(printed, Mapping) else {})


def _judged(told: Mapping[str, object]) -> Trial | None:
    rows = told.get("trials")
    if not isinstance(rows, list | tuple):
        return None
    index = _index(told, len(rows))
    found = trials_from_json(rows[index : index + 1])
    return found[0] if found else None


def _index(told: Mapping[str, object], count: int) -> int:
    judged = told.get("judged")
    return judged if isinstance(judged, int) and 0 <= judged < count else 0


def is_benchmark_only(capture: Capture) -> bool:
    """Tell whether a client's results are all there is of the load: nothing of the engine."""
    seen = (capture.steps, capture.engine_samples, capture.kernels)
    return judged_trial(capture) is not None and not any(seen)


def is_timed_by_client(capture: Capture) -> bool:
    """Tell whether the requests are a client's, which sees no admission."""
    return judged_trial(capture) is not None and all(
        r.admitted_ns is None for r in capture.requests
    )


def of_trial(capture: Capture, index: int) -> Capture:
    """Return the capture as it would be with another trial judged; of the judged one as it is."""
    if index == _index(_meta(capture), len(trials_of(capture))):
        return capture
    meta = {**capture.meta, "benchmark": {**_meta(capture), "judged": index}}
    capture = dataclasses.replace(capture, meta=meta, requests=(), tokens=())
    trial = judged_trial(capture) or Trial("")
    subject = dataclasses.replace(
        capture.subject, concurrency=trial.concurrency, rate_per_s=trial.rate_per_s
    )
    return dataclasses.replace(capture, subject=subject)


def benchmark_span(capture: Capture) -> Span | None:
    """Return the judged trial's length from 0, where results are all there is."""
    trial = judged_trial(capture) if is_benchmark_only(capture) else None
    if trial is None or not trial.duration_s or trial.duration_s > 1e9:
        return None
    return Span(0, round(trial.duration_s * 1e9))


def latency(trial: Trial, metric: str) -> Spread:
    """Return a latency, empty where it is not told."""
    return trial.latency.get(metric, Spread())


def tpot_s(trial: Trial) -> float | None:
    """Return the mean time per output token: as told, else from E2E, TTFT and length."""
    return latency(trial, "tpot_s").typical or tpot_from_ends(trial)


def tpot_from_ends(trial: Trial) -> float | None:
    """Return (E2E − TTFT) ÷ (output tokens − 1), from means (medians where there are none)."""
    e2e, ttft = latency(trial, "e2e_s").typical, latency(trial, "ttft_s").typical
    if e2e is None or ttft is None or e2e <= ttft or (trial.output_tokens or 0.0) < 2.0:
        return None
    return (e2e - ttft) / ((trial.output_tokens or 0.0) - 1.0)


def e2e_s(trial: Trial) -> float | None:
    """Return the mean time of a whole request: as told, else TTFT + TPOT · (tokens − 1)."""
    told = latency(trial, "e2e_s").typical
    ttft, tpot = latency(trial, "ttft_s").typical, latency(trial, "tpot_s").typical
    if told or ttft is None or tpot is None or (trial.output_tokens or 0.0) < 1.0:
        return told
    return ttft + tpot * ((trial.output_tokens or 0.0) - 1.0)


def request_rate(trial: Trial) -> float | None:
    """Return finished requests per second."""
    if trial.completed and trial.duration_s:
        return trial.completed / trial.duration_s
    return trial.requests_per_s


def in_flight(trial: Trial) -> float | None:
    """Return the mean requests in flight: as told, else Σ E2E ÷ duration (Little's law)."""
    e2e, rate = e2e_s(trial), request_rate(trial)
    if trial.in_flight is not None or e2e is None or rate is None:
        return trial.in_flight
    return e2e * rate


def offered(trial: Trial, concurrency: int | None) -> float | None:
    """Return the mean requests in flight that so many clients would keep up.

    The last of several waves may be short: 5 requests from 4 clients keep 2.5 in flight.
    """
    asked = (trial.completed or 0) + (trial.failed or 0)
    if concurrency is None or asked == 0:
        return concurrency
    return asked / math.ceil(asked / concurrency)


def _meta(capture: Capture) -> Mapping[str, object]:
    found = capture.meta.get("benchmark")
    return found if isinstance(found, Mapping) else {}
