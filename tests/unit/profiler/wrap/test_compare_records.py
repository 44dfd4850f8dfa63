"""A recorder's steps found again among a tracer's ranges; times in microseconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallscope.profiler.wrap.compare import Offset, Spans, compare

US = 1000
Row = tuple[str, float, float]
# Steps of uneven length that abut, as an engine's do.
RUN: list[Row] = [
    ("warmup", 0, 30_000),
    ("prefill", 50_000, 90_000),
    ("decode", 90_000, 96_000),
    ("decode", 96_000, 102_500),
    ("mixed", 102_500, 131_000),
    ("decode", 131_000, 137_100),
]


def spans(rows: Sequence[Row], by_us: float = 0) -> Spans:
    def column(i: int) -> np.ndarray:
        return np.array([round((row[i] + by_us) * US) for row in rows], dtype=np.int64)  # type: ignore[operator]

    return Spans(tuple(row[0] for row in rows), column(1), column(2))


def test_every_step_is_found_on_another_clock() -> None:
    # Ranges are opened 40 µs late and closed 60 µs early, and the clocks differ by −7 s.
    ranges = [(name, start + 40, end - 60) for name, start, end in RUN]
    found = compare(spans(RUN), spans(ranges, by_us=-7_000_000))
    assert found.expected == found.found == Counter(warmup=1, prefill=1, decode=3, mixed=1)
    assert found.is_whole
    assert (found.extra, found.differing, found.worst_ns) == (0, 0, 100 * US)
    assert found.offset is not None
    assert abs(found.offset.ns - (-7_000_000 + 40) * US) <= found.offset.error_ns == 200 * US


def test_lengths_that_differ_are_counted() -> None:
    ranges = list(RUN)
    ranges[1] = ("prefill", 50_000, 88_100)  # 1.9 ms short of 40 ms, within 5 %
    ranges[3] = ("decode", 96_000, 101_600)  # 0.9 ms short of 6.5 ms: 14 %, but within 1 ms
    ranges[4] = ("mixed", 102_500, 127_900)  # 3.1 ms short of 28.5 ms: 11 %
    found = compare(spans(RUN), spans(ranges, by_us=123))
    assert (found.differing, found.worst_ns) == (1, 3_100 * US)
    assert found.is_whole


def test_a_step_without_range_is_missing_and_others_are_not_taken_for_it() -> None:
    ranges = [row for i, row in enumerate(RUN) if i != 3]
    found = compare(spans(RUN), spans([*ranges, ("decode", 200_000, 206_500)]))
    assert found.expected - found.found == Counter(decode=1)
    assert (found.is_whole, found.extra) == (False, 1)


def test_a_name_is_part_of_a_step() -> None:
    ranges = [("decode" if name == "mixed" else name, start, end) for name, start, end in RUN]
    found = compare(spans(RUN), spans(ranges))
    assert found.expected - found.found == Counter(mixed=1)
    assert found.extra == 1


def test_only_steps_within_the_traced_window_are_expected() -> None:
    window_us = (80_000 + 1_000_000, 132_000 + 1_000_000)  # cuts into prefill and the last decode
    found = compare(
        spans(RUN),
        spans(RUN[2:5], by_us=1_000_000),
        window_ns=(window_us[0] * US, window_us[1] * US),
    )
    assert found.expected == found.found == Counter(decode=2, mixed=1)
    assert found.is_whole


@pytest.mark.parametrize(
    ("window_us", "lost", "expected"),
    [
        # The tracer began late: the prefill starts 99.9 ms after the window does, then 100.1 ms.
        ((-49_900, 500_000), 1, Counter(decode=3, mixed=1)),
        ((-50_100, 500_000), 1, Counter(prefill=1, decode=3, mixed=1)),
        # It ended early: the last decode ends 99.9 ms before the window does, then 100.1 ms.
        ((40_000, 237_000), 5, Counter(prefill=1, decode=2, mixed=1)),
        ((40_000, 237_200), 5, Counter(prefill=1, decode=3, mixed=1)),
        # A step lost between others is missing however near to the edge it lies.
        ((49_000, 138_000), 2, Counter(prefill=1, decode=3, mixed=1)),
    ],
)
def test_a_step_at_the_edge_of_the_window_may_be_lost(
    window_us: tuple[int, int], lost: int, expected: Counter[str]
) -> None:
    run = RUN[1:]
    ranges = [row for i, row in enumerate(run, 1) if i != lost]
    found = compare(spans(run), spans(ranges), window_ns=(window_us[0] * US, window_us[1] * US))
    assert found.expected == expected
    assert found.is_whole == (expected.total() == 4)


def test_lost_ranges_leave_the_wall_clock_to_say_what_was_expected() -> None:
    guess = Offset(1_000_000 * US, 5_000 * US)
    found = compare(spans(RUN), spans([]), guess=guess, window_ns=(1_040_000 * US, 1_200_000 * US))
    assert found.expected == Counter(prefill=1, decode=3, mixed=1)
    assert found.found == Counter()
    assert (found.offset, found.is_whole) == (None, False)


def test_a_guess_settles_what_equal_steps_leave_open() -> None:
    # Twelve equal steps, of which the tracer saw six: any six fit.
    run: list[Row] = [("decode", 10_000 * i, 10_000 * i + 8_000) for i in range(12)]
    own, seen = spans(run), spans(run[5:11])
    found = compare(own, seen, guess=Offset(300 * US, 4_000 * US))
    assert found.offset is not None
    assert abs(found.offset.ns) <= 200 * US
    assert found.found == Counter(decode=6)


def test_a_wrong_guess_is_overruled_by_the_spans() -> None:
    found = compare(spans(RUN), spans(RUN, by_us=1_000_000), guess=Offset(0, 5_000 * US))
    assert found.is_whole
    assert found.offset is not None
    assert found.offset.ns == 1_000_000 * US


def test_other_ranges_of_these_names_are_somebody_elses() -> None:
    others: list[Row] = [
        ("prefill", 7_000, 7_100),
        ("decode", 7_100, 7_110),
        ("decode", 8_000, 9_000),
    ]
    found = compare(spans(RUN), spans(others), guess=Offset(0, 5_000 * US))
    assert (found.offset, found.found, found.extra) == (None, Counter(), 3)
    assert found.expected == Counter(warmup=1, prefill=1, decode=3, mixed=1)


def test_nothing_recorded_is_nothing_expected() -> None:
    found = compare(spans([]), spans(RUN))
    assert (found.expected, found.extra, found.is_whole) == (Counter(), 6, False)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["prefill", "decode", "mixed"]),
            st.integers(300, 50_000),  # length
            st.integers(0, 20_000),  # pause before it
            st.integers(0, 60),  # the range begins so much later
            st.integers(0, 60),  # and ends so much earlier
        ),
        min_size=1,
        max_size=80,
    ),
    st.integers(-(10**12), 10**12),
)
def test_any_run_is_found_whole(steps: list[tuple[str, int, int, int, int]], by_us: int) -> None:
    run: list[Row] = []
    ranges: list[Row] = []
    now = 0
    for name, length, pause, late, early in steps:
        now += pause
        run.append((name, now, now + length))
        ranges.append((name, now + late, now + length - early))
        now += length
    guess = Offset(by_us * US, 100 * US)
    found = compare(spans(run), spans(ranges, by_us=by_us), guess=guess)
    assert found.found == Counter(row[0] for row in run)
    assert (found.extra, found.differing) == (0, 0)
    assert found.worst_ns == max(late + early for *_, late, early in steps) * US


@pytest.mark.parametrize("guess", [None, Offset(0, 10**9)])
def test_a_long_run_takes_no_time(guess: Offset | None) -> None:
    rng = np.random.default_rng(0)
    starts = np.cumsum(rng.integers(5_000, 9_000, 50_000))
    run: list[Row] = [("decode", int(t), int(t) + 4_900) for t in starts]
    found = compare(spans(run), spans(run, by_us=77), guess=guess)
    assert found.found == Counter(decode=50_000)
