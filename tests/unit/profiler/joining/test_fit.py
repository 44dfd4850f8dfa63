"""Begins and ends of work against each other: residual, range, strays, and what one cannot see."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stallscope.profiler.joining.by_events import offset_by_events
from stallscope.profiler.joining.candidates import Candidate
from stallscope.profiler.joining.edges import Between, Stretch, Work
from stallscope.profiler.joining.fit import Comparison, Fit

S = 1_000_000_000
TRUE = ((60.0, 145.0), (190.0, 260.0), (331.0, 420.0), (505.0, 575.0))


def work(
    spans: Sequence[tuple[float, float]], *, wide_s: float = 0.0, span_s: float = 640.0
) -> Work:
    """Return work whose moments are known to `wide_s`, which is also how often one looked."""

    def around(second: float) -> Between:
        return Between(round((second - wide_s) * S), round(second * S))

    stretches = tuple(Stretch(around(a), around(b)) for a, b in spans)
    return Work((0, round(span_s * S)), round(wide_s * S), stretches)


def moved(by_s: float, *, rate: float = 1.0) -> tuple[tuple[float, float], ...]:
    return tuple((a * rate + by_s, b * rate + by_s) for a, b in TRUE)


def fit(first: Work, second: Work, near_s: float = 0.0) -> Fit:
    found = Comparison(first, second).fit(round(near_s * S))
    assert found is not None
    return found


def test_exact_moments_give_the_exact_offset() -> None:
    # The second source's clock is 1.25 s ahead: 1.25 s is taken off its times.
    found = fit(work(TRUE), work(moved(1.25)))
    assert (found.offset_ns / S, found.residual_ns, found.matched, found.looked_at) == (
        -1.25,
        0,
        8,
        8,
    )


@pytest.mark.parametrize(("off_s", "agrees"), [(1.9, True), (2.1, False)])
def test_a_residual_of_two_seconds_is_the_most(off_s: float, agrees: bool) -> None:
    # One begin and one end: apart by off_s this way and that, so no offset does better.
    found = fit(work([(100.0, 500.0)]), work([(100.0 - off_s, 500.0 + off_s)]))
    assert found.residual_ns / S == pytest.approx(off_s)
    assert found.agrees is agrees
    assert found.offset_ns == 0


def test_a_clock_that_runs_fast_leaves_half_of_what_it_gains() -> None:
    # 0.2 % fast: 0.12 s at the first begin (60 s), 1.15 s at the last end (575 s).
    found = fit(work(TRUE), work(moved(0.0, rate=1.002)))
    assert found.residual_ns / S == pytest.approx((1.15 - 0.12) / 2, abs=1e-6)
    assert found.offset_ns / S == pytest.approx(-(1.15 + 0.12) / 2, abs=1e-6)


def test_moments_known_to_ten_seconds_leave_a_range() -> None:
    # Each of the coarse source's moments may be up to 10 s earlier than the exact one.
    found = fit(work(TRUE, wide_s=10.0), work(TRUE))
    assert (found.least_ns / S, found.most_ns / S) == (-10, 0)
    assert (found.offset_ns, found.residual_ns) == (0, 0)


def test_one_moment_in_five_may_be_of_somebody_else() -> None:
    stray = [*TRUE, (590.0, 610.0)]
    found = fit(work(stray), work(TRUE))
    assert (found.residual_ns, found.matched, found.looked_at) == (0, 8, 10)
    assert not fit(work([(10.0, 30.0), *stray]), work(TRUE)).agrees  # 4 of 12


def test_pauses_that_the_coarse_source_cannot_see_are_closed() -> None:
    # The fine source saw a pause of 3 s in the first stretch; the other looks every 10 s.
    fine = [(60.0, 100.0), (103.0, 145.0), *TRUE[1:]]
    found = fit(work(TRUE, wide_s=10.0), work(fine))
    assert (found.matched, found.looked_at) == (8, 8)


def test_work_that_goes_on_before_and_after_tells_nothing() -> None:
    always = Work((0, 640 * S), S, (Stretch(None, None),))
    assert Comparison(always, work(TRUE)).fit(0) is None
    assert Comparison(always, always).fit(0) is None


def test_at_the_edge_of_what_one_saw_it_may_have_begun_busy() -> None:
    # The second source began 0.5 s after the work did, and saw it from its own first look on.
    late = Work((60_500_000_000, 640 * S), S, (Stretch(None, Between(144 * S, 145 * S)),))
    found = fit(work(TRUE[:1]), late)
    assert (found.residual_ns, found.matched, found.looked_at) == (0, 1, 1)


def test_events_alone_find_any_offset_without_a_clock() -> None:
    compared = Comparison(work(TRUE), work([(a - 55, b - 55) for a, b in TRUE], span_s=580.0))
    found = offset_by_events(compared, None)
    assert found is not None
    assert found.offset_ns / S == 55


def test_events_that_fit_in_two_ways_find_none() -> None:
    # Two stretches alike, 200 s apart: one alone may be either.
    twice = work([(100.0, 150.0), (300.0, 350.0)])
    compared = Comparison(twice, work([(20.0, 70.0)], span_s=90.0))
    assert offset_by_events(compared, None) is None


@pytest.mark.parametrize(("by_s", "is_found"), [(899.0, True), (901.0, False)])
def test_a_clock_goes_wrong_by_a_quarter_of_an_hour_at_most(by_s: float, is_found: bool) -> None:
    second = Work(
        (round(by_s * S), round((640 + by_s) * S)), 0, work(moved(by_s), span_s=1e4).stretches
    )
    found = offset_by_events(Comparison(work(TRUE), second), [Candidate(0, 0)])
    assert (found is not None) is is_found
