"""The load from the client's side: what is offered, what arrives, what waits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from capture_builders import MS, request
from trial_captures import of_trials, trial

from stallscope.analyzers.benchmark.demand import benchmark_demand, late_sender
from stallscope.analyzers.benchmark.facts import (
    in_flight,
    is_benchmark_only,
    judged_trial,
    offered,
    tpot_from_ends,
)
from stallscope.analyzers.benchmark.queue import burst_admission, prompt_need_s, queued_share
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.judge import judge
from stallscope.analyzers.load.demand import UNKNOWN_DEMAND, observe_demand
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.spec import Subject
from stallscope.profiler.trial import Spread, Trial
from stallscope.reports import terminal

T = Thresholds()


def bottleneck(capture: Capture) -> str:
    found = judge(capture, (), cost=None, missing="", span=Span(0, 0), t=T)
    return found.bottleneck


def test_in_flight_is_littles_law() -> None:
    # 8 a second, each 0.1 + 100 · 0.01 = 1.1 s
    assert in_flight(trial()) == pytest.approx(8.8)
    assert in_flight(trial(in_flight=3.0)) == 3.0
    assert in_flight(trial(latency={"e2e_s": Spread()})) == pytest.approx(8.8)  # from TTFT and TPOT
    assert in_flight(Trial("a file", completed=10, duration_s=10.0)) is None


@pytest.mark.parametrize(
    ("completed", "failed", "concurrency", "mean"),
    [(40, 0, 8, 8.0), (5, 0, 4, 2.5), (5, 0, 8, 5.0), (9, 1, 4, 10 / 3), (0, 0, 4, 4.0)],
)
def test_waves_of_requests_keep_fewer_in_flight_than_there_are_clients(
    completed: int, failed: int, concurrency: int, mean: float
) -> None:
    assert offered(trial(completed=completed, failed=failed), concurrency) == pytest.approx(mean)


def test_a_client_that_sends_less_than_half_of_what_it_offers() -> None:
    # 16 clients, 7 requests a second of 1.1 s each are 7.7 in flight, 8 a second 8.8.
    assert bottleneck(of_trials(trial(rate=7.0, concurrency=16))) == "client"
    assert bottleneck(of_trials(trial(rate=8.0, concurrency=16))) != "client"
    assert bottleneck(of_trials(trial(rate=7.0))) != "client"  # nobody says what was offered


def test_clients_that_wait_for_their_first_token_are_no_idle_clients() -> None:
    # TTFT 0.3 s of 1.3 s, and a prompt alone needs at most 1/5 s: 8 % waits at the least.
    slow = trial(ttft=0.3, rate=5.0, concurrency=16)
    assert in_flight(slow) == pytest.approx(6.5)
    assert queued_share(slow) == pytest.approx(0.1 / 1.3)
    assert bottleneck(of_trials(slow)) != "client"


def test_the_users_concurrency_replaces_the_files() -> None:
    capture = of_trials(trial(rate=7.0, concurrency=8))
    assert bottleneck(capture) != "client"
    given = replace(capture, subject=replace(capture.subject, concurrency=16))
    assert bottleneck(given) == "client"


@pytest.mark.parametrize(
    ("sent", "delay", "is_late"),
    [
        (44.9, 1.0, True),
        (45.0, 1.0, False),
        (30.0, 0.11, False),
        (30.0, 0.12, True),
        (30.0, None, True),
    ],
)
def test_a_generator_that_does_not_keep_its_rate(
    sent: float, delay: float | None, is_late: bool
) -> None:
    # Asked for 50 a second: 45 is the line; requests take 1.1 s, a tenth of that is 0.11 s.
    capture = of_trials(trial(rate_per_s=50.0, sent_per_s=sent, send_delay_s=delay))
    assert (late_sender(capture, "served") is not None) is is_late
    assert (bottleneck(capture) == "client") is is_late


def test_a_generator_that_does_not_say_what_it_sent_is_not_judged() -> None:
    assert late_sender(of_trials(trial(rate_per_s=50.0)), "served") is None
    assert late_sender(of_trials(trial(sent_per_s=5.0)), "served") is None


@pytest.mark.parametrize(
    ("cap", "rate", "is_client"),
    [(9, 8.0, True), (10, 8.0, False), (9, 9.0, False), (None, 8.0, False)],
)
def test_a_rate_that_the_generators_own_cap_holds_back(
    cap: int | None, rate: float, is_client: bool
) -> None:
    # Asked for 10 a second, 9 is the line. 8 a second of 1.1 s are 8.8 in flight, 98 % of 9.
    capture = of_trials(trial(rate=rate, rate_per_s=10.0, cap=cap))
    assert (bottleneck(capture) == "client") is is_client


def test_a_cap_holds_nothing_back_where_the_server_lets_requests_wait() -> None:
    held = of_trials(trial(rate=8.0, rate_per_s=10.0, cap=9))
    assert late_sender(held, "served") is not None
    assert late_sender(held, "overloaded") is None  # more in flight would wait there, too


def test_a_cap_beside_a_rate_is_no_offer() -> None:
    # 1 a second is 1.1 in flight of 64 allowed, and all that was asked for.
    assert bottleneck(of_trials(trial(rate=1.0, rate_per_s=1.0, cap=64))) != "client"


def test_ttft_beyond_the_runs_own_rate_is_waiting() -> None:
    # 10 a second finish, so that a prompt needs 0.1 s at most; 1.1 of 2.1 s − 0.1 s wait.
    assert queued_share(trial(ttft=1.1, rate=10.0)) == pytest.approx(1.0 / 2.1)
    assert queued_share(trial(ttft=0.1, rate=10.0)) == 0.0
    # The quickest holds a prompt's own time whole.
    assert prompt_need_s(trial(ttft=Spread(1.1, 1.1, least=0.6), rate=10.0)) == 0.6
    # A cold start moves the mean, not the median.
    assert queued_share(trial(ttft=Spread(1.1, 0.1), rate=10.0)) == 0.0


def test_the_bound_needs_one_engine_a_rate_and_a_ttft() -> None:
    assert queued_share(trial(ttft=1.1, rate=10.0, engines=2)) is None
    assert queued_share(trial(ttft=Spread())) is None
    lone = Trial("a file", latency={"ttft_s": Spread(1.0), "e2e_s": Spread(2.0)})
    assert queued_share(lone) is None


@pytest.mark.parametrize(("ttft", "load"), [(0.375, "overloaded"), (0.374, "served")])
def test_a_queue_begins_at_a_fifth_of_the_time(ttft: float, load: str) -> None:
    # TTFT + 1 s in all, 0.1 s needed: (0.375 − 0.1) ÷ 1.375 = 0.2
    found = diagnose(of_trials(trial(ttft=ttft, rate=10.0)))
    assert found.verdict.load == load
    assert found.verdict.bottleneck == "undetermined"
    assert (found.verdict.between == ("capacity", "scheduling")) is (load == "overloaded")


def burst(*, last_first: float, first_end: float, duration: float = 10.0) -> Trial:
    """50 requests at once, 9.5 s each on average."""
    return trial(
        ttft=Spread(2.5, 2.5, least=0.5, most=last_first),
        tpot=0.07,
        rate=5.0,
        duration=duration,
        completed=50,
        latency={"e2e_s": Spread(9.5, 9.5, least=first_end)},
    )


def test_prompts_hold_each_other_where_all_requests_ran_side_by_side() -> None:
    found = diagnose(of_trials(burst(last_first=4.0, first_end=4.1)))
    # (2.5 − 0.5) ÷ 9.5 = 21 % waiting, and no request had ended when the last began.
    assert (found.verdict.bottleneck, found.verdict.load) == ("compute", "overloaded")
    assert found.verdict.sentence == (
        "Prompts are prefilled at a steady rate under every cap and the rest queue: 10.0 of 47.5 "
        "requests in flight wait on average (21 % of their time)."
    )
    assert {m.name: m.value for m in found.measures}["limit_prefill"] == 1.0


@pytest.mark.parametrize(
    "one",
    [
        burst(last_first=4.1, first_end=4.0),  # some began after others had ended
        burst(last_first=4.0, first_end=4.1, duration=11.0),  # 43 of 50 in flight: not all at once
        trial(ttft=2.5, rate=5.0),  # no extremes
    ],
)
def test_otherwise_a_client_does_not_see_the_limit(one: Trial) -> None:
    assert burst_admission(of_trials(one)) is None


def test_the_servers_own_queue_is_a_share_of_what_is_in_flight() -> None:
    # 50 a second of 1.1 s are 55 in flight, 22 of them wait.
    found = diagnose(of_trials(trial(rate=50.0, waiting=22.0)))
    measures = {m.name: m for m in found.measures}
    assert measures["queue_wait_share"].value == pytest.approx(0.4)
    assert measures["queue_wait_share"].side is None
    assert measures["waiting_mean"].provenance == "measured"
    assert found.verdict.load == "overloaded"
    assert "22 of 55 requests in flight wait in the server's queue" in found.verdict.sentence


def test_nothing_in_flight_most_of_the_time_is_no_limit() -> None:
    # 0.45 requests a second of 1.1 s are 0.495 in flight: nothing is, half the time at the least.
    found = diagnose(of_trials(trial(rate=0.45, rate_per_s=0.45)))
    assert (found.verdict.bottleneck, found.verdict.load) == ("none", "underloaded")
    measures = {m.name: m for m in found.measures}
    assert measures["idle_share"].value == pytest.approx(0.505)
    assert (measures["idle_share"].provenance, measures["idle_share"].side) == ("bound", "lower")
    busier = diagnose(of_trials(trial(rate=0.46, rate_per_s=0.46)))  # 0.506 in flight
    assert busier.verdict.load == "served"


def test_times_of_requests_say_exactly_when_nothing_was_in_flight() -> None:
    rows = tuple(
        request(i, start * 1000, None, None, end * 1000)
        for i, (start, end) in enumerate([(0.0, 2.0), (1.0, 3.0), (8.0, 10.0)])
    )
    demand = benchmark_demand(of_trials(trial(), requests=rows))
    assert demand is not None
    assert demand.idle_share == pytest.approx(0.5)  # 3 to 8 of 10 s


def test_nothing_that_came_back_is_no_verdict() -> None:
    capture = of_trials(Trial("a file", completed=0, failed=8, duration_s=0.1))
    found = diagnose(capture)
    assert found.latency == {}
    assert found.verdict.bottleneck == "undetermined"


def test_requests_of_a_client_tell_no_queue() -> None:
    """Beside gauges the gauges count: a client does not see when its request was admitted."""
    rows = (request(0, 0, None, None, 1000),)
    gauges = tuple(
        EngineSample(t * MS, "0", name, value)
        for t in (0, 500, 1000)
        for name, value in (("waiting", 1.0), ("running", 3.0))
    )
    capture = replace(of_trials(trial(), requests=rows), engine_samples=gauges)
    assert not is_benchmark_only(capture)
    assert benchmark_demand(capture) is None
    demand = observe_demand(capture, Span(0, 1000 * MS))
    assert (demand.queued_share, demand.in_flight) == (0.25, 4.0)
    assert observe_demand(replace(capture, engine_samples=()), Span(0, 9)) == UNKNOWN_DEMAND


def test_meta_of_another_shape_is_no_benchmark() -> None:
    for said in (None, 3, {"trials": 3}, {"trials": []}, {"trials": [4]}):
        assert judged_trial(Capture(meta={"benchmark": said})) is None
    odd = Capture(
        subject=Subject(),
        meta={"benchmark": {"judged": 7, "trials": [{"completed": "x", "latency": {"ttft_s": 3}}]}},
    )
    assert judged_trial(odd) == Trial("")


def test_tpot_from_the_ends() -> None:
    assert tpot_from_ends(trial()) == pytest.approx(0.01)  # 1 s over 100 gaps
    assert tpot_from_ends(trial(tokens=1.0)) is None


def test_a_client_alone_does_not_tell_that_little_waited() -> None:
    """TTFT beyond a prompt's own time bounds the queue from below; the server's mean tells it."""
    blind, told = diagnose(of_trials(trial())), diagnose(of_trials(trial(waiting=0.0)))
    assert (blind.verdict.load, blind.verdict.is_load_seen) == ("served", False)
    assert (told.verdict.load, told.verdict.is_load_seen) == ("served", True)
    assert "not observable: nothing tells what waited; judged as served" in terminal.render(
        blind, width=100, color=False
    )
    assert "not observable: nothing tells what waited" not in terminal.render(
        told, width=100, color=False
    )


def test_a_client_bounds_decodes_share_and_the_rule_says_so() -> None:
    """TTFT 0.1 s of 1.1 s: decode has 1 s of them or more, yet nothing tells the engine's view."""
    found = diagnose(of_trials(trial()))
    (share,) = [m for m in found.measures if m.name == "decode_share_client"]
    assert (share.value, share.side) == (pytest.approx(1 / 1.1), "lower")
    (rule,) = [r for r in found.rules if r.id == "decode-focus"]
    assert (
        rule.reason
        == "by the client decode's share has only a bound, as its TTFT holds the queue too"
    )
