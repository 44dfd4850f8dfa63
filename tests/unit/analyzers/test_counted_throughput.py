"""Throughput from counters, by hand."""

from __future__ import annotations

from stallscope.analyzers.load.counted import counted_throughput
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.result import Throughput
from stallscope.profiler.capture import EngineSample

S = 1_000_000_000


def sampled(engine: str, name: str, *values: float) -> list[EngineSample]:
    return [EngineSample(i * S, engine, name, value) for i, value in enumerate(values)]


def test_counters_rise_over_the_span() -> None:
    samples = [
        *sampled("0", "output_tokens_total", 1000, 1100, 1300, 1600),
        *sampled("0", "finished_total", 7, 7, 8, 10),
    ]
    # 600 tokens and 3 requests in 3 s.
    assert counted_throughput(samples, Span(0, 3 * S)) == Throughput(None, 200.0, 1.0)
    # From 1 s to 2 s: 200 tokens, 1 request.
    assert counted_throughput(samples, Span(S, 2 * S)) == Throughput(None, 200.0, 1.0)


def test_engines_add_up() -> None:
    samples = [
        *sampled("0", "input_tokens_total", 0, 50, 100),
        *sampled("1", "input_tokens_total", 500, 500, 600),
    ]
    assert counted_throughput(samples, Span(0, 2 * S)).input_tokens_per_s == 100.0


def test_one_reading_tells_no_rate() -> None:
    samples = sampled("0", "output_tokens_total", 1000)
    assert counted_throughput(samples, Span(0, S)) == Throughput(None, None, None)
    assert counted_throughput([], Span(0, S)) == Throughput(None, None, None)


def test_a_counter_that_stands_still_is_a_rate_of_zero() -> None:
    samples = sampled("0", "output_tokens_total", 5, 5)
    assert counted_throughput(samples, Span(0, S)).output_tokens_per_s == 0.0
