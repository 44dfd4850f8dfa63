"""Server samples beside a benchmark: whose figures of rates and of a mean step are told."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import ON_CPU, gauges
from trial_captures import of_trials, trial

from stallscope.analyzers.benchmark.client_step import held_by_client
from stallscope.analyzers.benchmark.latency import client_throughput, rates_note
from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.load.sampled_work import mean_step_note, sampled_step
from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import Capture

SPAN = Span(0, 20_000_000_000)


def joined(used: float, *, readings: int = 3, running: float = 8, trials: bool = True) -> Capture:
    """Eight clients with 100 + 101 tokens: 8 requests a second, of 0.1 s + 100 · 9 ms each.

    The log says that 1,000 prompt tokens a second were taken in, where the client counted 800.
    """
    apart_ms = 20_000.0 / (readings - 1)
    samples = gauges(
        apart_ms,
        running=(running,) * readings,
        waiting=(0,) * readings,
        kv_used_fraction=(used,) * readings,
        output_tokens_total=tuple(0.808 * apart_ms * i for i in range(readings)),
        input_tokens_total=tuple(1.0 * apart_ms * i for i in range(readings)),
    )
    of_client = of_trials(
        trial(
            concurrency=8,
            tpot=0.009,
            input_tokens=100.0,
            output_tokens=101.0,
            input_tokens_per_s=800.0,
            output_tokens_per_s=808.0,
            requests_per_s=8.0,
        )
    )
    meta = {"server_log": {"kv_tokens": 100_000.0}, **(of_client.meta if trials else {})}
    subject = dataclasses.replace(ON_CPU, concurrency=8)
    return Capture(subject=subject, engine_samples=samples, meta=meta)


def cost_of(capture: Capture) -> CostModel:
    cost = build_cost_model(capture)
    assert isinstance(cost, CostModel)
    return cost


def test_a_gauge_of_one_digit_gives_way_to_the_clients_own_figures() -> None:
    """7.2 decode at once (8 a second · 0.9 s), each with 100 + 101 / 2 tokens: 1,083.6."""
    capture = joined(0.002)
    found = sampled_step(capture, cost_of(capture), SPAN)
    assert found is not None
    assert found.context == pytest.approx(7.2 * 150.5)
    # A step by the gauges: 8 requests ÷ 808 tokens/s = 9.9 ms, of 808 and 800 tokens/s.
    assert found.seconds == pytest.approx(8 / 808)
    assert (found.rows, found.prompts) == (pytest.approx(8.0), pytest.approx(800 * 8 / 808))
    assert found.prompt_length == 100
    # 0.2 % ± 0.05 % of 100,000 tokens.
    (note,) = mean_step_note(capture, cost_of(capture), SPAN)
    assert "by its client's figures it makes 8 tokens" in note
    assert "finds 1,084 tokens in the KV cache." in note
    assert note.endswith(
        "The KV pool's gauge, at the moments that it was read, says 150 to 250 tokens."
    )


def test_without_a_client_a_gauge_of_one_digit_is_an_interval() -> None:
    capture = joined(0.002, trials=False)
    (note,) = mean_step_note(capture, cost_of(capture), SPAN)
    assert "finds 150 to 250 tokens in the KV cache" in note
    fine = joined(0.0021234, trials=False)  # as a page of /metrics prints it
    assert "finds 212 tokens in" in mean_step_note(fine, cost_of(fine), SPAN)[0]


def test_many_readings_of_a_fine_gauge_stay() -> None:
    capture = joined(0.0101234, readings=21)
    found = sampled_step(capture, cost_of(capture), SPAN)
    assert found is not None
    assert (found.context, found.prompts) == (pytest.approx(1012.34), pytest.approx(1000 * 8 / 808))


def test_rates_are_the_clients_and_the_difference_is_said() -> None:
    capture = joined(0.002)
    rates = client_throughput(capture, SPAN)
    assert (rates.input_tokens_per_s, rates.output_tokens_per_s, rates.requests_per_s) == (
        *(800.0, 808.0),
        8.0,
    )
    assert rates_note(capture, SPAN) == (
        "The benchmark's client counted 800 input tokens/s over its run, the server's samples make "
        "1,000 of the time that they tell of: shown are the client's.",
    )
    assert rates_note(joined(0.002, trials=False), SPAN) == ()


def test_where_others_were_served_too_the_server_tells() -> None:
    """More than 1.1 · 8 + 1 requests in flight cannot be the clients' alone."""
    capture = joined(0.002, running=10)
    assert held_by_client(capture, 0.01) is None
    assert client_throughput(capture, SPAN).input_tokens_per_s == pytest.approx(1000)
    assert rates_note(capture, SPAN)[0].endswith("shown are the server's.")
