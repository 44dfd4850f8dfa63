"""How much of a time follows a setting; every share is worked out by hand."""

from __future__ import annotations

import pytest

from stallscope.analyzers.experiment.response import respond


def test_time_that_waits_for_a_resource() -> None:
    # t = 1 + 9/x: at x = 1 nine tenths of 10 s wait for it.
    found = respond("resource", [1, 2, 4], [10.0, 5.5, 3.25])
    assert found is not None
    assert found.share == pytest.approx(0.9)
    assert found.misfit == pytest.approx(0.0, abs=1e-9)
    assert (found.points, found.seen, found.is_flat) == (3, True, False)


def test_time_that_a_burden_adds() -> None:
    # t = 20 ms + 14 ms a request: at 10 requests 140 of 160 ms.
    found = respond("burden", [0, 10], [0.020, 0.160])
    assert found is not None
    assert found.share == pytest.approx(140 / 160)
    assert found.slope == pytest.approx(0.014)


def test_more_of_a_resource_that_costs_time_is_a_negative_share() -> None:
    # t = 4 − 2/x: at x = 1 the time is 2 and the part −2.
    found = respond("resource", [1, 2], [2.0, 3.0])
    assert found is not None
    assert found.share == pytest.approx(-1.0)


def test_flat_is_less_than_a_tenth() -> None:
    # Two points at x = 1 and 2: t(2) = 1 − share / 2.
    flat = respond("resource", [1, 2], [1.0, 1.0 - 0.099 / 2])
    not_flat = respond("resource", [1, 2], [1.0, 1.0 - 0.101 / 2])
    assert flat is not None
    assert flat.is_flat
    assert not_flat is not None
    assert not not_flat.is_flat


def test_a_law_that_does_not_fit_says_so() -> None:
    # 14.0, 16.8 and 4 pages a second with 1, 2 and 6 threads are of no such law.
    found = respond("resource", [1, 2, 6], [1 / 14.0, 1 / 16.8, 1 / 4])
    assert found is not None
    assert found.misfit > 0.2


def test_a_small_change_of_the_setting_shows_nothing() -> None:
    # 0.4 of the time over a factor of 1.24 is a change of 7.7 %, yet too near to repeat exactly.
    near = respond("resource", [100, 124], [1.0, 1.0])
    far = respond("resource", [100, 126], [1.0, 1.0])
    assert near is not None
    assert not near.seen
    assert far is not None
    assert far.seen


@pytest.mark.parametrize(
    ("law", "xs"), [("resource", [2, 2]), ("resource", [0, 2]), ("burden", [3, 3])]
)
def test_what_cannot_be_compared(law: str, xs: list[float]) -> None:
    assert respond(law, xs, [1.0, 2.0]) is None  # type: ignore[arg-type]
