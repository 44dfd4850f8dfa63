"""The offsets that two wall clocks may have, by what each of them states."""

from __future__ import annotations

from calendar import timegm

from stallscope.profiler.joining.candidates import Candidate, candidates_of
from stallscope.profiler.joining.words import apart, span_words
from stallscope.profiler.wall_clock import WallClock

S = 1_000_000_000
HOUR = 3600 * S


def at(*date: int) -> int:
    return timegm((*date, 0, 0, 0)[:6]) * S


def test_clocks_that_tell_all_have_one_offset() -> None:
    # The second source began 90 s later, so 90 s is added to its times.
    first, second = WallClock(at(2025, 6, 17, 12)), WallClock(at(2025, 6, 17, 12) + 90 * S)
    assert candidates_of(first, second) == (Candidate(90 * S, 0),)


def test_a_local_time_may_be_of_any_zone_in_use() -> None:
    utc = WallClock(at(2025, 6, 17, 12))
    # India's clocks show 17:30 then: five hours and a half are taken off.
    india = WallClock(at(2025, 6, 17, 17, 30), has_zone=False)
    assert Candidate(0, -19_800 * S) in candidates_of(utc, india)
    assert Candidate(0, 19_800 * S) in candidates_of(india, utc)
    # Nobody lives 15 h east or 13 h west of UTC, or at ten minutes past the hour.
    zones = {c.zone_ns for c in candidates_of(utc, india)}
    assert {14 * HOUR, -12 * HOUR, 20_700 * S} & {-z for z in zones} == {
        14 * HOUR,
        -12 * HOUR,
        20_700 * S,
    }
    assert not {-15 * HOUR, 13 * HOUR, 600 * S} & zones


def test_the_plainest_offset_comes_first() -> None:
    local = WallClock(at(2025, 6, 17, 12), has_zone=False)
    zones = [c.zone_ns / HOUR for c in candidates_of(local, local)]
    assert zones[:5] == [0, -1, 1, -2, 2]
    assert zones[-1] in (-12.75, 12.75, 13.75, -13.75)


def test_a_year_that_is_not_stated_is_that_of_the_other() -> None:
    log = WallClock(at(2001, 12, 31, 23, 54), has_year=False)
    page = WallClock(at(2025, 12, 31, 23, 54))
    assert candidates_of(log, page)[0] == Candidate(0, 0)
    # The other source began after midnight: in the new year, six minutes and a second later.
    after = WallClock(at(2026, 1, 1, 0, 0, 1))
    assert candidates_of(log, after)[0] == Candidate(361 * S, 0)
    assert candidates_of(after, log)[0] == Candidate(-361 * S, 0)


def test_two_logs_without_years_may_be_on_both_sides_of_new_year() -> None:
    old = WallClock(at(2001, 12, 31, 23, 59, 50), has_year=False)
    new = WallClock(at(2001, 1, 1, 0, 0, 10), has_year=False)
    assert candidates_of(old, new)[0] == Candidate(20 * S, 0)
    assert candidates_of(new, old)[0] == Candidate(-20 * S, 0)


def test_the_first_of_march_may_stand_for_a_leap_day() -> None:
    # A log without years counts 29 February as 1 March.
    log = WallClock(at(2001, 3, 1, 8), has_year=False)
    assert Candidate(0, 0) in candidates_of(log, WallClock(at(2024, 2, 29, 8)))
    assert Candidate(0, 0) in candidates_of(log, WallClock(at(2024, 3, 1, 8)))
    assert Candidate(0, 0) not in candidates_of(log, WallClock(at(2025, 2, 28, 8)))


def test_lengths_and_spans_in_words() -> None:
    assert [apart(s * S) for s in (0, -0.44, 59, 60, 603, 19_800, 90_061)] == [
        "0.0 s",
        "0.4 s",
        "59.0 s",
        "1 min",
        "10 min 3 s",
        "5 h 30 min",
        "1 d 1 h 1 min 1 s",
    ]
    assert [apart(ns) for ns in (1, 4_400_000, -60_000_000)] == ["1 ms", "4 ms", "0.1 s"]
    wall = WallClock(at(2001, 6, 17, 12), has_zone=False, has_year=False)
    told = "is from 06-17 12:00:00 to 06-17 12:01:30 (no year and no zone stated)"
    assert span_words((0, 90 * S), wall) == told
    assert span_words((0, 90 * S), WallClock(at(2025, 6, 17, 12))) == (
        "is from 2025-06-17 12:00:00 to 2025-06-17 12:01:30 (UTC)"
    )
    assert span_words((5 * S, 95 * S), None) == "lasts 1 min 30 s and tells no date"
