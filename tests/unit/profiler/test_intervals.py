"""Interval arithmetic against a timeline that marks every nanosecond."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallscope.profiler.trace.intervals import (
    Union,
    covered_ns,
    difference,
    fresh_ns,
    gaps,
    intersection,
    overlap_ns,
    time_before,
    union,
    within,
)

LENGTH = 60
SPANS = st.lists(st.tuples(st.integers(0, LENGTH), st.integers(0, LENGTH)).map(sorted), max_size=12)
WINDOWS = st.tuples(st.integers(0, LENGTH), st.integers(0, LENGTH))


def united(spans: list[list[int]]) -> Union:
    starts = np.array([start for start, _ in spans], dtype=np.int64)
    return union(starts, np.array([end for _, end in spans], dtype=np.int64))


def marked(spans: list[list[int]]) -> list[bool]:
    """Mark each nanosecond that some interval holds."""
    return [any(start <= t < end for start, end in spans) for t in range(LENGTH)]


def marks_of(found: Union) -> list[bool]:
    assert np.all(found.end_ns > found.start_ns)
    assert np.all(found.start_ns[1:] > found.end_ns[:-1])  # disjoint, in order, none touching
    return marked(np.stack((found.start_ns, found.end_ns), axis=1).tolist())


@settings(deadline=None)
@given(SPANS)
def test_a_union_holds_what_any_interval_holds(spans: list[list[int]]) -> None:
    found = united(spans)
    assert marks_of(found) == marked(spans)
    assert found.total_ns == sum(marked(spans))


@settings(deadline=None)
@given(SPANS, WINDOWS)
def test_a_window_is_busy_or_a_gap(spans: list[list[int]], window: tuple[int, int]) -> None:
    start, end = window
    inside = [start <= t < end for t in range(LENGTH)]
    busy = [a and b for a, b in zip(marked(spans), inside, strict=True)]
    free = [not a and b for a, b in zip(marked(spans), inside, strict=True)]
    assert marks_of(within(united(spans), start, end)) == busy
    assert marks_of(gaps(united(spans), start, end)) == free


@settings(deadline=None)
@given(SPANS, st.lists(WINDOWS.map(sorted), max_size=6))
def test_cover_of_many_windows_at_once(spans: list[list[int]], windows: list[list[int]]) -> None:
    starts = np.array([start for start, _ in windows], dtype=np.int64)
    ends = np.array([end for _, end in windows], dtype=np.int64)
    marks = marked(spans)
    found = united(spans)
    assert covered_ns(found, starts, ends).tolist() == [sum(marks[a:b]) for a, b in windows]
    assert time_before(found, ends).tolist() == [sum(marks[:b]) for _, b in windows]


@settings(deadline=None)
@given(SPANS)
def test_each_interval_adds_what_none_before_it_held(spans: list[list[int]]) -> None:
    spans = sorted(spans)
    starts = np.array([start for start, _ in spans], dtype=np.int64)
    ends = np.array([end for _, end in spans], dtype=np.int64)
    seen: set[int] = set()
    expected = []
    for start, end in spans:
        expected.append(len(set(range(start, end)) - seen))
        seen |= set(range(start, end))
    assert fresh_ns(starts, ends).tolist() == expected


@settings(deadline=None)
@given(SPANS, SPANS)
def test_both_and_only_one(a: list[list[int]], b: list[list[int]]) -> None:
    pairs = list(zip(marked(a), marked(b), strict=True))
    assert marks_of(intersection(united(a), united(b))) == [x and y for x, y in pairs]
    assert overlap_ns(united(a), united(b)) == sum(x and y for x, y in pairs)
    assert marks_of(difference(united(a), united(b))) == [x and not y for x, y in pairs]


def test_an_interval_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(ValueError, match="ends before it starts"):
        union(np.array([5]), np.array([4]))
