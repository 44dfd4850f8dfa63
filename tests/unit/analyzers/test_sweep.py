"""Several loads: what more of it buys, and the knee."""

from __future__ import annotations

import pytest
from capture_builders import request
from trial_captures import of_trials, trial

from stallscope.analyzers.benchmark.sweep import build_sweep
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Sweep
from stallscope.profiler.trial import Trial


def at(clients: int, tokens_per_s: float, *, ttft: float = 0.1, **more: object) -> Trial:
    return trial(
        ttft=ttft,
        rate=tokens_per_s / 101,
        concurrency=clients,
        output_tokens_per_s=tokens_per_s,
        **more,
    )


def swept(*trials: Trial) -> Sweep:
    found = build_sweep(of_trials(*trials), lambda i: f"class {i}")
    assert found is not None
    return found


def test_one_trial_is_no_sweep() -> None:
    assert build_sweep(of_trials(at(1, 100.0)), str) is None


def test_gain_is_growth_over_growth_of_the_load() -> None:
    found = swept(at(4, 400.0), at(1, 100.0), at(2, 150.0))
    assert [row.load for row in found.rows] == [1, 2, 4]
    # 50 % more for 100 %, then 167 % more for 100 %.
    assert [row.marginal for row in found.rows] == [None, 0.5, pytest.approx(5 / 3)]
    assert [row.bottleneck for row in found.rows] == ["class 1", "class 2", "class 0"]


@pytest.mark.parametrize(("last", "knee"), [(299.0, 2.0), (300.0, None)])
def test_the_knee_is_the_last_load_before_the_gain_halves(last: float, knee: float | None) -> None:
    found = swept(at(1, 100.0), at(2, 200.0), at(4, last))  # 200 → 300 is half of twice the load
    assert found.knee == knee
    assert found.axis == "concurrency"
    if knee:
        assert found.sentence == (
            "The knee is at concurrency 2 with 200 output tokens/s: 100 % more load after it buys "
            "+50 % tokens/s, and TTFT goes from 0.1 to 0.1 s."
        )
    else:
        assert found.sentence == (
            "No knee up to concurrency 4: 300 output tokens/s still grow nearly with the load."
        )


@pytest.mark.parametrize(("ttft", "knee"), [(0.41, 2.0), (0.4, None)])
def test_ttft_that_takes_off_is_a_knee_too(ttft: float, knee: float | None) -> None:
    # Twice the load: more than four times the TTFT.
    found = swept(at(1, 100.0), at(2, 200.0), at(4, 400.0, ttft=ttft))
    assert found.knee == knee
    assert (": at 4 TTFT takes off, from 0.1 to 0.41 s." in found.sentence) is (knee is not None)


def test_two_loads_tell_no_knee() -> None:
    found = swept(at(1, 100.0), at(2, 101.0))
    assert found.knee is None
    assert found.sentence.startswith("Fewer than 3 loads")


def test_repeats_of_a_load_count_as_their_mean() -> None:
    # 200 on average at 2 clients, and 250 at 4.
    found = swept(at(1, 100.0), at(2, 150.0), at(2, 250.0), at(4, 250.0))
    assert found.knee == 2.0


def test_only_loads_of_one_workload_are_compared() -> None:
    longer = {"input_tokens": 111.0}
    found = swept(at(1, 100.0), at(2, 200.0), at(4, 210.0), at(4, 20.0, **longer))
    assert [row.workload for row in found.rows] == [0, 0, 0, 3]
    assert found.rows[3].marginal is None
    assert found.knee == 2.0
    close = swept(at(1, 100.0), at(2, 200.0, input_tokens=109.0))
    assert [row.workload for row in close.rows] == [0, 0]


def test_rates_are_an_axis_and_no_load_at_all_is_none() -> None:
    rates = [trial(rate=r, rate_per_s=r) for r in (1.0, 2.0, 4.0)]
    assert swept(*rates).axis == "requests per second"
    loads = swept(trial(), trial(rate=9.0))
    assert (loads.axis, loads.knee) == (None, None)
    assert loads.sentence.startswith("The trials offer no load")


def test_a_report_judges_every_row_and_says_which_is_meant() -> None:
    idle = at(64, 101.0)  # 1.1 of 64 in flight
    found = diagnose(of_trials(at(1, 90.0), at(2, 180.0), idle, judged=1))
    assert found.sweep is not None
    assert [row.bottleneck for row in found.sweep.rows] == [
        "undetermined",
        "undetermined",
        "client",
    ]
    note = (
        "The verdict and all figures are of concurrency 2, the one with most tokens/s of 3 trials"
    )
    assert any(text.startswith(note) for text in found.notes)


def about(*trials: Trial, judged: int) -> str:
    found = diagnose(of_trials(*trials, judged=judged))
    return next(n for n in found.notes if n.startswith("The verdict and all figures are of "))


def test_a_load_past_the_knee_says_so() -> None:
    """200 → 220 tokens/s for twice the clients, 10 %: the knee is at 2. 231 are 15.5 % over 200."""
    loads = (at(1, 100.0), at(2, 200.0), at(4, 220.0, ttft=0.3), at(8, 231.0, ttft=0.9))
    assert about(*loads, judged=3).endswith(
        "; that is past the knee at concurrency 2: +16 % tokens/s over it, with a TTFT of 0.9 "
        "instead of 0.1 s."
    )
    assert "knee" not in about(*loads, judged=1)  # it is the knee
    assert "knee" not in about(*loads, judged=0)


def test_no_knee_is_told_of_another_workload_or_where_there_is_none() -> None:
    longer = at(8, 300.0, input_tokens=1000.0)
    loads = (at(1, 100.0), at(2, 200.0), at(4, 220.0))
    assert "knee" not in about(*loads, longer, judged=3)
    assert "knee" not in about(at(1, 100.0), at(2, 200.0), at(4, 390.0), judged=2)


def test_the_judged_load_has_the_verdicts_class() -> None:
    """Two bursts of 1.1 s in 9.1 s: idle for 76 %, which means of 2.2 in flight do not show."""
    sent = [0.0] * 10 + [8000.0] * 10
    bursts = tuple(request(i, at, None, at + 100, at + 1100) for i, at in enumerate(sent))
    both = trial(rate=2.0, duration=10.0), trial(rate=1.0, duration=10.0)
    found = diagnose(of_trials(*both, requests=bursts))
    assert found.sweep is not None
    classes = {row.requests_per_s: row.bottleneck for row in found.sweep.rows}
    assert classes[2.0] == found.verdict.bottleneck == "none"
