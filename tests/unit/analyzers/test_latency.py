"""Latency and throughput by the glossary's formulas, on two requests that can be done by hand."""

from __future__ import annotations

import pytest
from capture_builders import MS, request

from stallscope.analyzers.load.latency import distribution, latencies, throughput
from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import Capture, Cut, Token


def test_percentiles_interpolate_between_order_statistics() -> None:
    found = distribution([4.0, 1.0, 2.0, 3.0])
    # Position of p in 4 values: 3 · p. p50 → 1.5, p90 → 2.7, p99 → 2.97.
    assert (found.mean, found.p50, found.n) == (2.5, 2.5, 4)
    assert (found.p90, found.p99) == (pytest.approx(3.7), pytest.approx(3.97))


def test_each_latency_by_its_formula() -> None:
    rows = (
        request(0, 0, 10, 30, 100, output_tokens=8, preempted_ns=5 * MS),
        request(1, 0, 0, 20, 20, output_tokens=1),
        request(2, 0, 50, 60, None),
        request(3, 0, None, None, None, status="waiting"),
    )
    tokens = (Token(0, 30 * MS), Token(0, 45 * MS), Token(0, 40 * MS), Token(1, 20 * MS))
    found = latencies(Capture(requests=rows, tokens=tokens))
    assert found["ttft_s"].mean == pytest.approx((0.030 + 0.020 + 0.060) / 3)
    assert (found["tpot_s"].mean, found["tpot_s"].n) == (pytest.approx(0.010), 1)  # 70 ms / 7
    assert (found["itl_s"].mean, found["itl_s"].n) == (pytest.approx(0.0075), 2)  # 10 and 5 ms
    assert (found["e2e_s"].mean, found["e2e_s"].n) == (pytest.approx(0.060), 2)
    assert (found["queue_s"].p50, found["queue_s"].n) == (pytest.approx(0.015), 3)  # 0, 15, 50


def test_what_did_not_happen_is_left_out() -> None:
    assert latencies(Capture()) == {}
    waiting = Capture(requests=(request(0, 0, None, None, None, status="waiting"),))
    assert latencies(waiting) == {}


def test_throughput_over_the_span() -> None:
    rows = (
        request(0, 0, 0, 10, 100),
        request(1, 0, 0, 10, None, output_tokens=4),
        request(2, 0, None, None, None, output_tokens=0, status="waiting"),
    )
    found = throughput(Capture(requests=rows), Span(0, 200 * MS))
    # In 0.2 s: two prompts of 16, 8 + 4 tokens out, one request done.
    assert found.input_tokens_per_s == pytest.approx(160)
    assert found.output_tokens_per_s == pytest.approx(60)
    assert found.requests_per_s == pytest.approx(5)


def test_tokens_of_a_cut_run_are_not_known_where_none_was_noted() -> None:
    """A request that runs is written down again only at its end, which a cut run has not."""
    rows = (
        request(0, 0, 0, 10, 100),
        request(1, 0, 0, 10, None, output_tokens=1, status="running"),
    )
    span, cut = Span(0, 200 * MS), Cut(200 * MS, "cut")
    blind = throughput(Capture(requests=rows, cut=cut), span)
    assert blind.output_tokens_per_s is None
    assert blind.requests_per_s == pytest.approx(5)
    noted = throughput(Capture(requests=rows, cut=cut, tokens=(Token(1, 10 * MS),)), span)
    assert noted.output_tokens_per_s == pytest.approx(45)  # 8 + 1 in 0.2 s
    whole = throughput(Capture(requests=rows[:1], cut=cut), span)
    assert whole.output_tokens_per_s == pytest.approx(40)


def test_throughput_without_requests_is_not_known() -> None:
    for found in (throughput(Capture(), Span(0, MS)), throughput(Capture(), None)):
        rates = (found.input_tokens_per_s, found.output_tokens_per_s, found.requests_per_s)
        assert rates == (None, None, None)
