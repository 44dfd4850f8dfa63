"""Means from an engine's histograms, and what a server cannot see of its clients."""

from __future__ import annotations

import pytest
from capture_builders import MS, gauges, request

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.engine_latency import NOTE, engine_latencies
from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.spec import Subject

S = 1000 * MS
WHAT = "the offered load"
NOBODY = Subject()


def served(**series: tuple[float, ...]) -> tuple[EngineSample, ...]:
    return gauges(1000.0, **{"running": (2,) * 5, "waiting": (0,) * 5, **series})


def test_the_rise_of_the_sum_over_that_of_the_count() -> None:
    """Before the watch 100 requests of 9 s each; in it four more, 1.2 s in all: 0.3 s."""
    samples = served(
        ttft_s_sum=(900.0, 900.4, 900.8, 901.2, 901.2), ttft_s_count=(100, 102, 103, 104, 104)
    )
    (found,) = engine_latencies(Capture(engine_samples=samples), Span(0, 4 * S)).items()
    assert found[0] == "ttft_s"
    assert (found[1].mean, found[1].n) == (pytest.approx(0.3), 4)
    assert (found[1].p50, found[1].p90, found[1].p99) == (None, None, None)
    # The first second alone: two requests, 0.4 s.
    first = engine_latencies(Capture(engine_samples=samples), Span(0, S))
    assert (first["ttft_s"].mean, first["ttft_s"].n) == (pytest.approx(0.2), 2)


def test_engines_are_added_up() -> None:
    one = served(e2e_s_sum=(0, 2, 2, 2, 2), e2e_s_count=(0, 1, 1, 1, 1))
    two = tuple(
        s._replace(engine="1")
        for s in served(e2e_s_sum=(5, 5, 5, 5, 15), e2e_s_count=(7, 7, 7, 7, 10))
    )
    found = engine_latencies(Capture(engine_samples=one + two), Span(0, 4 * S))["e2e_s"]
    assert (found.mean, found.n) == (pytest.approx(12 / 4), 4)


def test_what_nobody_ended_in_has_no_mean() -> None:
    still = served(itl_s_sum=(7.0,) * 5, itl_s_count=(70,) * 5, queue_s_sum=(1, 2, 3, 4, 5))
    assert engine_latencies(Capture(engine_samples=still), Span(0, 4 * S)) == {}
    assert NOTE not in diagnose(Capture(engine_samples=still)).notes


def test_it_never_denies_a_queue() -> None:
    """Two run and ten wait for ever; those that ended had waited for nothing."""
    ended = {"queue_s_sum": (0.0,) * 5, "queue_s_count": (0, 1, 2, 3, 4)}
    found = diagnose(Capture(engine_samples=served(waiting=(10,) * 5, **ended)))
    assert found.verdict.load == "overloaded"
    assert found.latency["queue_s"].mean == 0.0
    assert NOTE in found.notes


def test_requests_that_are_known_one_by_one_tell_more() -> None:
    samples = served(ttft_s_sum=(0, 9, 9, 9, 9), ttft_s_count=(0, 1, 1, 1, 1))
    found = diagnose(Capture(engine_samples=samples, requests=(request(0, 0, 0, 500, 4000),)))
    assert found.latency["ttft_s"].mean == pytest.approx(0.5)
    assert NOTE not in found.notes


def unseen(samples: tuple[EngineSample, ...], subject: Subject = NOBODY) -> list[str]:
    found = diagnose(Capture(subject=subject, engine_samples=samples)).not_observable
    return [n.reason for n in found if n.what == WHAT]


def test_what_is_offered_does_not_show_at_the_server() -> None:
    assert unseen(served()) == [
        "nothing waits at the server (2.0 in flight on average), and whether its clients meant to "
        "send more does not show there"
    ]


@pytest.mark.parametrize(
    ("samples", "subject"),
    [
        (served(), Subject(concurrency=2)),  # it was told
        (served(), Subject(rate_per_s=1.0)),
        (served(waiting=(2,) * 5), Subject()),  # those who wait were offered
        (served(running=(0,) * 5), Subject()),  # nobody came
        ((), Subject()),
    ],
)
def test_where_it_is_known_or_changes_nothing_it_is_not_asked_for(
    samples: tuple[EngineSample, ...], subject: Subject
) -> None:
    assert unseen(samples, subject) == []
