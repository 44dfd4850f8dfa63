"""Load figures from requests and from gauges, and the load that follows from them."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import MS, decodes, gauges, request, step

from stallscope.analyzers.load.demand import (
    UNKNOWN_DEMAND,
    Demand,
    classify_load,
    is_client_limited,
    observe_demand,
)
from stallscope.analyzers.load.gauges import gauges as gauge_rows
from stallscope.analyzers.load.span import Span, run_span, union_ns
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, Token

T = Thresholds()


def demand(queued: float | None, idle: float | None, *, grows: bool = False) -> Demand:
    return Demand(queued, idle, 4.0, 0.0, grows, "derived", "a test")


def ms(start: float, end: float) -> Span:
    return Span(round(start * MS), round(end * MS))


@pytest.mark.parametrize(
    ("intervals", "length"),
    [([], 0), ([(0, 5)], 5), ([(0, 5), (3, 8)], 8), ([(6, 8), (0, 2)], 4), ([(0, 9), (2, 3)], 9)],
)
def test_union(intervals: list[tuple[int, int]], length: int) -> None:
    assert union_ns(intervals) == length


@pytest.mark.parametrize(
    ("queued", "idle", "grows", "load"),
    [
        (0.0, 0.901, False, "idle"),
        (0.0, 0.90, False, "underloaded"),
        (0.5, 0.901, True, "idle"),
        (0.049, 0.50, False, "underloaded"),
        (0.05, 0.50, False, "served"),  # something waits
        (0.0, 0.499, False, "served"),
        (0.20, 0.0, False, "overloaded"),
        (0.199, 0.0, False, "served"),
        (0.20, 0.6, False, "overloaded"),
        (0.01, 0.0, True, "overloaded"),  # the queue grows
        (None, None, False, "served"),
    ],
)
def test_load(queued: float | None, idle: float | None, grows: bool, load: str) -> None:
    assert classify_load(demand(queued, idle, grows=grows), T) == load


@pytest.mark.parametrize(
    ("in_flight", "queued", "offered", "limited"),
    [
        (3.9, 0.049, 8.0, True),
        (4.0, 0.0, 8.0, False),
        (3.9, 0.05, 8.0, False),
        (3.9, 0.0, None, False),
        (None, 0.0, 8.0, False),
    ],
)
def test_client(
    in_flight: float | None, queued: float, offered: float | None, limited: bool
) -> None:
    found = dataclasses.replace(demand(queued, 0.0), in_flight=in_flight)
    assert is_client_limited(found, offered, T) is limited


def test_from_requests() -> None:
    """Two requests in a span of 10 ms.

    A: 0 to 4, admitted at 1. B: 2 to 8, admitted at 5, 1 ms preempted of its 3 ms after that.
    """
    rows = (request(0, 0, 1, 2, 4), request(1, 2, 5, 6, 8, preempted_ns=MS))
    found = observe_demand(Capture(requests=rows), ms(0, 10))
    assert found.queued_share == pytest.approx(5 / 10)  # (1 + 3 + 1) of 4 + 6
    assert found.idle_share == pytest.approx(0.2)  # [8, 10]
    assert found.in_flight == pytest.approx(1.0)  # 10 request-ms in 10 ms
    assert found.waiting == pytest.approx(0.5)
    assert found.provenance == "measured"


def test_a_window_cuts_the_requests() -> None:
    """In [2, 5]: A is there for 2 ms and runs; B for 3 ms and waits."""
    rows = (request(0, 0, 1, 2, 4), request(1, 2, 5, 6, 8))
    found = observe_demand(Capture(requests=rows), ms(2, 5))
    assert found.queued_share == pytest.approx(3 / 5)
    assert found.idle_share == pytest.approx(0.0)
    assert found.in_flight == pytest.approx(5 / 3)


def test_requests_without_an_end_stay_to_the_end_of_the_span() -> None:
    rows = (request(0, 0, 1, 2, None), request(1, 4, None, None, None, status="waiting"))
    found = observe_demand(Capture(requests=rows), ms(0, 10))
    assert found.queued_share == pytest.approx(7 / 16)  # (1 + 6) of 10 + 6
    assert found.idle_share == pytest.approx(0.0)


def test_a_request_that_was_turned_away_never_waited() -> None:
    rows = (request(0, 0, 0, 1, 10), request(1, 0, None, None, None, status="failed"))
    found = observe_demand(Capture(requests=rows), ms(0, 10))
    assert (found.queued_share, found.in_flight) == (0.0, 1.0)


def test_the_wait_for_the_step_that_runs_is_no_queue() -> None:
    """Steps of 10 ms. A comes at 2 and is taken at 10: 8 ms. B comes at 2, is taken at 20: 8 + 10.

    Together they wait 26 ms of the 18 + 28 they stay; B is held for 10.
    """
    steps = tuple(step(i, 10 * i, 10, waiting=0, running=1) for i in range(3))
    rows = (request(0, 2, 10, 20, 20), request(1, 2, 20, 30, 30))
    found = observe_demand(Capture(steps=steps, requests=rows), ms(0, 30))
    assert found.queued_share == pytest.approx(26 / 46)
    assert found.step_wait_share == pytest.approx(16 / 46)
    assert found.held_share == pytest.approx(10 / 46)
    blind = tuple(s._replace(waiting=None) for s in steps)
    found = observe_demand(Capture(steps=blind, requests=rows), ms(0, 30))
    assert (found.step_wait_share, found.held_share) == (None, found.queued_share)


@pytest.mark.parametrize(("step_wait", "load"), [(0.0, "overloaded"), (0.11, "served")])
def test_load_goes_by_what_was_held(step_wait: float, load: str) -> None:
    found = dataclasses.replace(demand(0.30, 0.0), step_wait_share=step_wait)
    assert classify_load(found, T) == load


def test_waits_that_nobody_timed_leave_a_lower_bound() -> None:
    rows = (request(0, 0, 0, 1, 10, preemptions=5), request(1, 0, 0, 1, 10, preemptions=0))
    found = observe_demand(Capture(requests=rows), ms(0, 10))
    assert (found.queued_share, found.provenance) == (0.0, "bound")
    timed = (rows[0]._replace(preempted_ns=MS), rows[1])
    assert observe_demand(Capture(requests=timed), ms(0, 10)).provenance == "measured"


def test_a_request_that_failed_in_the_queue_waited_all_its_time() -> None:
    rows = (request(0, 0, None, None, 5, status="failed"),)
    assert observe_demand(Capture(requests=rows), ms(0, 10)).queued_share == pytest.approx(1.0)


def test_waiting_grows_when_each_third_waits_more() -> None:
    # One request runs all the time; every 10 ms one more arrives and is never admitted.
    queue = tuple(request(i, 10 * i, None, None, None) for i in range(1, 9))
    rows = (request(0, 0, 0, 1, None), *queue)
    assert observe_demand(Capture(requests=rows), ms(0, 90)).waiting_grows


def test_a_steady_queue_does_not_grow() -> None:
    rows = tuple(request(i, 10 * i, 10 * i + 10, 10 * i + 11, 10 * i + 20) for i in range(9))
    assert not observe_demand(Capture(requests=rows), ms(0, 90)).waiting_grows


def test_from_sampled_gauges() -> None:
    """Four stretches of 1 ms; the last sample only ends the fourth."""
    rows = gauges(waiting=(0, 2, 2, 0, 9), running=(0, 2, 4, 2, 9))
    found = observe_demand(Capture(engine_samples=rows), ms(0, 4))
    assert found.queued_share == pytest.approx(4 / 12)  # 4 waiting of 4 + 8 in the system
    assert found.idle_share == pytest.approx(0.25)
    assert found.in_flight == pytest.approx(3.0)
    assert found.waiting == pytest.approx(1.0)
    assert found.provenance == "derived"


def test_sampled_gauges_of_several_engines_add_up() -> None:
    one = gauges(waiting=(1, 1), running=(2, 2))
    other = tuple(s._replace(engine="second") for s in one)
    found = observe_demand(Capture(engine_samples=one + other), ms(0, 1))
    assert (found.waiting, found.in_flight) == (2.0, 6.0)


def test_engines_sampled_at_other_times_add_up_as_well() -> None:
    one = gauges(waiting=(1, 1, 1), running=(2, 2, 2))
    late = tuple(
        s._replace(engine="second", t_ns=s.t_ns + MS // 2)
        for s in gauges(waiting=(5, 5, 5), running=(0, 0, 0))
    )
    found = observe_demand(Capture(engine_samples=late + one), ms(0, 3))
    assert (found.waiting, found.in_flight) == (pytest.approx(6.0), pytest.approx(8.0))


def test_one_engines_queue_does_not_hide_in_the_sum() -> None:
    """Two of four wait at one engine: 2 of 44 in all, which nobody would call a queue."""
    full = gauges(waiting=(2,) * 3, running=(2,) * 3)
    busy = tuple(s._replace(engine="second") for s in gauges(waiting=(0,) * 3, running=(40,) * 3))
    found = observe_demand(Capture(engine_samples=full + busy), ms(0, 2))
    assert found.queued_share == pytest.approx(2 / 44)
    assert found.worst_engine_share == found.held_share == 0.5
    assert classify_load(found, T) == "overloaded"


def test_requests_in_front_of_the_scheduler_wait() -> None:
    rows = gauges(waiting=(0, 0), running=(20, 20), front_waiting=(50, 50))
    found = observe_demand(Capture(engine_samples=rows), ms(0, 1))
    assert (found.waiting, found.in_flight) == (50.0, 70.0)


def test_a_second_rank_of_the_same_engine_changes_nothing() -> None:
    """Prefills of 10 ms every 25 ms: idle 60 % of the time to the start of the last."""
    one = tuple(step(i, 25 * i, 10, phase="prefill", waiting=0, running=1) for i in range(5))
    two = tuple(s._replace(rank=1) for s in one)
    found = observe_demand(Capture(steps=one), ms(0, 100))
    assert found.idle_share == pytest.approx(0.6)
    assert observe_demand(Capture(steps=one + two), ms(0, 100)) == found


def test_of_ranks_with_work_of_their_own_the_fullest_speaks() -> None:
    idle = tuple(step(i, 25 * i, 10, phase="prefill", waiting=0, running=1) for i in range(4))
    busy = tuple(step(i, i, 1, rank=1, waiting=1, running=3) for i in range(90))
    found = observe_demand(Capture(steps=idle + busy), ms(0, 100))
    assert (found.idle_share, found.queued_share) == (0.0, 0.25)


def test_gauges_grow_when_the_last_third_stands_above_the_first() -> None:
    def grows(*waiting: float) -> bool:
        rows = gauges(waiting=waiting, running=(1.0,) * len(waiting))
        capture = Capture(engine_samples=rows)
        return observe_demand(capture, ms(0, len(waiting))).waiting_grows

    assert grows(0, 0, 1, 1, 2, 2, 0)  # thirds of 0, 1 and 2: 2 ≥ 0 · 1.5 + 1
    assert not grows(1, 1, 1, 1, 2, 2, 0)  # 2 < 1 · 1.5 + 1
    assert not grows(0, 0, 5, 5, 9, 0, 0)  # it emptied again
    assert not grows(0, 0, 9, 9, 0)  # four stretches are too few to tell


def test_from_step_gauges_with_the_gaps_between() -> None:
    """Steps [0, 1], [2, 3] decode on: that gap is not idle. A prefill at 6 begins anew: [3, 6]."""
    steps = (
        step(0, 0, 1, phase="prefill", waiting=0, running=1),
        step(1, 2, 1, waiting=0, running=1),
        step(2, 6, 2, phase="prefill", waiting=1, running=1),
        step(3, 9, 1, phase="prefill", waiting=0, running=2),  # the queue lived through [8, 9]
    )
    found = observe_demand(Capture(steps=steps), ms(0, 10))
    # 5 ms in steps and 3 ms idle; waiting 2 of waiting 2 + running (1 + 1 + 2 + 2).
    assert found.idle_share == pytest.approx(3 / 8)
    assert found.queued_share == pytest.approx(2 / 8)


def test_an_idle_window_between_two_steps_is_seen_as_idle() -> None:
    steps = (
        step(0, 0, 1, phase="prefill", waiting=0, running=1),
        step(1, 50, 1, phase="prefill", waiting=0, running=1),
    )
    found = observe_demand(Capture(steps=steps), ms(10, 20))
    assert (found.idle_share, classify_load(found, T)) == (1.0, "idle")


def test_requests_go_before_gauges_and_steps_before_samples() -> None:
    steps = decodes(1, waiting=3, running=1)
    sampled = gauges(waiting=(0, 0), running=(1, 1))
    both = Capture(steps=steps, engine_samples=sampled)
    assert observe_demand(both, ms(0, 1)).queued_share == pytest.approx(0.75)
    rows = (request(0, 0, 0, 0.5, 1),)
    with_requests = dataclasses.replace(both, requests=rows)
    assert observe_demand(with_requests, ms(0, 1)).queued_share == 0.0


def test_steps_without_gauges_leave_the_word_to_the_samples() -> None:
    capture = Capture(steps=decodes(2), engine_samples=gauges(waiting=(1, 1), running=(1, 1)))
    assert len(gauge_rows(capture, ms(0, 2))) == 1
    assert observe_demand(capture, ms(0, 2)).queued_share == 0.5


def test_unknown_demand_is_unknown_and_not_zero() -> None:
    for capture in (
        Capture(),
        Capture(steps=decodes(3)),
        Capture(requests=(request(0, 0, 0, 1, 2),)),
    ):
        span = ms(0, 0) if capture.requests else ms(0, 3)
        found = observe_demand(capture, span)
        assert found == UNKNOWN_DEMAND
        assert (found.queued_share, found.idle_share, found.in_flight) == (None, None, None)


def test_the_run_spans_from_the_first_arrival_or_step_to_the_last_moment() -> None:
    steps = (step(0, 5, 2, warmup=True), step(1, 20, 5))
    assert run_span(Capture(steps=steps)) == ms(20, 25)
    rows = (request(0, 10, 11, 12, 40), request(1, 11, 12, 13, None))
    assert run_span(Capture(steps=steps, requests=rows)) == ms(10, 40)
    assert run_span(Capture(requests=rows[1:])) == ms(11, 13)
    late = (Token(1, 30 * MS),)
    assert run_span(Capture(requests=rows[1:], tokens=late)) == ms(11, 30)
    assert run_span(Capture(engine_samples=gauges(waiting=(0, 0, 0)))) == ms(0, 2)
    assert run_span(Capture()) is None
