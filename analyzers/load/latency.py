"""TTFT, TPOT, ITL, end-to-end and queue time, and throughput, from requests and tokens."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from stallscope.analyzers.load.counted import counted_throughput
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.result import Distribution, Throughput
from stallscope.profiler.capture import Capture, Request

NS = 1e-9


def distribution(seconds: Sequence[float]) -> Distribution:
    """Summarise; percentiles interpolate linearly between order statistics."""
    p50, p90, p99 = np.percentile(seconds, [50, 90, 99])
    return Distribution(float(np.mean(seconds)), float(p50), float(p90), float(p99), len(seconds))


def _tpot(request: Request) -> float | None:
    if request.first_token_ns is None or request.end_ns is None or request.output_tokens < 2:
        return None
    return (request.end_ns - request.first_token_ns) * NS / (request.output_tokens - 1)


def _itl(capture: Capture) -> list[float]:
    times: dict[int, list[int]] = {}
    for token in capture.tokens:
        times.setdefault(token.request, []).append(token.t_ns)
    return [
        (b - a) * NS for series in times.values() for a, b in itertools.pairwise(sorted(series))
    ]


def latencies(capture: Capture) -> Mapping[str, Distribution]:
    """Return ttft_s, tpot_s, itl_s, e2e_s, queue_s; a metric without a value is left out.

    TTFT counts from arrival, so it holds the queue; TPOT is (last − first token) / (tokens − 1);
    queue time is arrival to admission plus the time spent preempted.
    """
    done = [r for r in capture.requests if r.status == "finished"]
    values: dict[str, list[float]] = {
        "ttft_s": [
            (r.first_token_ns - r.arrival_ns) * NS
            for r in capture.requests
            if r.first_token_ns is not None
        ],
        "tpot_s": [t for t in map(_tpot, done) if t is not None],
        "itl_s": _itl(capture),
        "e2e_s": [(r.end_ns - r.arrival_ns) * NS for r in done if r.end_ns is not None],
        "queue_s": [
            (r.admitted_ns - r.arrival_ns + (r.preempted_ns or 0)) * NS
            for r in capture.requests
            if r.admitted_ns is not None
        ],
    }
    return {name: distribution(v) for name, v in values.items() if v}


def throughput(capture: Capture, span: Span | None) -> Throughput:
    """Rates over the span: prompts prefilled, tokens generated, requests finished.

    Of a server whose requests are not known one by one, by its counters.
    """
    if span is None or not span.duration_ns:
        return Throughput(None, None, None)
    if not capture.requests:
        return counted_throughput(capture.engine_samples, span)
    seconds, made = span.duration_ns * NS, _generated(capture)
    started = [r for r in capture.requests if r.first_token_ns is not None]
    done = sum(r.status == "finished" for r in capture.requests)
    return Throughput(
        input_tokens_per_s=sum(r.input_tokens for r in started) / seconds,
        output_tokens_per_s=None if made is None else made / seconds,
        requests_per_s=done / seconds,
    )


def _generated(capture: Capture) -> int | None:
    """Count output tokens; None where a cut left requests running of which no token was noted."""
    is_open = capture.cut is not None and any(r.status == "running" for r in capture.requests)
    if is_open and not capture.tokens:
        return None
    return sum(r.output_tokens for r in capture.requests)
