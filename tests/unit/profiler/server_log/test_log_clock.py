"""Stamps without year and zone on a clock that never goes back."""

from __future__ import annotations

from calendar import timegm

import pytest

from stallscope.profiler.server_log.clock import LogClock, stamp_of
from stallscope.profiler.server_log.readings import spread

S = 1_000_000_000


def seconds(*stamps: str) -> list[float]:
    clock = LogClock()
    return [clock.tell(stamp_of(text)) / S for text in stamps]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("INFO 02-03 23:59:50 [x.py:1] a", "INFO 02-04 00:00:05 [x.py:1] b"),
        ("(APIServer pid=1) INFO 12-31 23:59:50 [x.py:1]", "ERROR 01-01 00:00:05 [x.py:1]"),
        ("INFO 02-28 23:59:50 [x.py:1] a", "INFO 03-01 00:00:05 [x.py:1] b"),
        ("[2025-12-31 23:59:50 TP0] a", "[2026-01-01 00:00:05 TP0] b"),
        ("[12/31/2025-23:59:50] [TRT-LLM] [I]", "[01/01/2026-00:00:05] [TRT-LLM] [I]"),
        ("x timestamp=1723569622 id=0", "y timestamp=1723569637 id=0"),
        ('{"Timestamp":"12-18-2023 03:35:37"}', '{"Timestamp":"12-18-2023 03:35:52"}'),
    ],
)
def test_fifteen_seconds_over_midnight_and_new_year(first: str, second: str) -> None:
    assert seconds(first, second) == [0, 15]


def test_a_library_that_states_the_year_lies_in_the_same_run() -> None:
    times = ("INFO 11-28 15:27:15 a", "2025-11-28 15:28:09,929 - INFO - b", "INFO 11-28 15:28:20 c")
    assert seconds(*times) == [0, 54, 65]
    assert seconds("2024-02-29 10:00:00 a", "INFO 02-29 10:00:05 b", "2024-03-01 10:00:09 c") == [
        0,
        86405,  # a day that the calendar without a year does not have
        86409,
    ]
    assert seconds("INFO 02-28 10:00:00 a", "2024-02-29 10:00:05 b") == [0, 86405]


def test_a_line_without_a_stamp_keeps_its_place() -> None:
    assert seconds("INFO 02-03 10:00:00 a", "Traceback", "INFO 02-03 10:00:09 b", "end") == [
        0,
        0,
        9,
        9,
    ]


def test_a_process_that_writes_late_holds_the_time() -> None:
    times = ("INFO 02-03 10:00:00 a", "INFO 02-03 10:00:09 b", "INFO 02-03 10:00:04 c")
    assert seconds(*times, "INFO 02-03 10:00:10 d") == [0, 9, 9, 10]


def test_a_clock_set_back_an_hour_goes_on() -> None:
    times = ("INFO 10-26 02:59:50 a", "INFO 10-26 03:00:00 b", "INFO 10-26 02:00:00 c")
    assert seconds(*times, "INFO 10-26 02:00:07 d") == [0, 10, 10, 17]


def test_days_that_are_none_are_no_stamps() -> None:
    assert stamp_of("INFO 13-41 10:00:00 a") is None
    assert stamp_of("nothing here") is None
    assert stamp_of("INFO 02-29 10:00:00 a") == stamp_of("INFO 03-01 10:00:00 a")


def test_years_far_from_ours_are_no_stamps_and_no_time_is_longer_than_two_centuries() -> None:
    assert stamp_of("[9999-01-01 00:00:00 TP0] a") is None
    assert stamp_of("[1969-01-01 00:00:00 TP0] a") is None
    back_and_forth = ["[1970-01-01 00:00:00] a", "[2199-01-01 00:00:00] b"] * 3
    assert seconds(*back_and_forth)[-1] == 200 * 365 * 86_400


@pytest.mark.parametrize(
    "dated",
    ["2026-04-21 06:21:47,637 - INFO - autotuner.py", "[04/21/2026-06:21:47] [TRT-LLM] [I] a"],
)
def test_lines_of_libraries_with_a_year_move_nothing(dated: str) -> None:
    # FlashInfer writes the year, vLLM does not.
    lines = ("INFO 04-21 06:21:37 [a.py:1] a", dated, "INFO 04-21 06:21:50 [a.py:1] b")
    assert seconds(*lines) == [0, 10, 13]
    assert seconds(dated, lines[2], dated.replace("47", "59")) == [0, 3, 12]
    # Over new year, written a little late, and on a leap day.
    late = ("INFO 12-31 23:59:50 a", "2026-01-01 00:00:05 b", "INFO 01-01 00:00:07 c")
    assert seconds(*late, "2026-01-01 00:00:09 d") == [0, 15, 17, 19]
    assert seconds("2026-01-01 00:00:05 a", "INFO 12-31 23:59:59 b", "INFO 01-01 00:00:09 c") == [
        0,
        0,
        4,
    ]
    assert seconds("INFO 02-29 10:00:00 a", "2024-02-29 10:00:07 b") == [0, 7]


def test_one_line_with_a_year_dates_the_log() -> None:
    clock = LogClock()
    for text in ("INFO 04-21 06:21:37 [a.py:1] a", "2026-04-21 06:21:47,637 - INFO - b"):
        clock.tell(stamp_of(text))
    wall = clock.wall()
    assert wall is not None
    assert wall.zero_ns == timegm((2026, 4, 21, 6, 21, 37)) * S
    assert (wall.has_year, wall.has_zone) == (True, False)


def test_lines_of_one_second_are_spread_over_it() -> None:
    assert spread([0, 0, 3 * S]) == [0, S // 2, 3 * S]
    # A first second that is cut keeps the pace of the next, at its end; a last one at its start.
    times = [0, S, S, S, S, 2 * S, 2 * S]
    assert [t / S for t in spread(times)] == [0, 1, 1.25, 1.5, 1.75, 2, 2.25]
    assert [t / S for t in spread([0, 0, S, S, S, S])] == [0.5, 0.75, 1, 1.25, 1.5, 1.75]
