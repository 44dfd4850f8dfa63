"""Distinct numbers of a column, against a sorted set."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stallscope.profiler.nsys.texts import distinct

IDS = st.one_of(st.integers(-1, 40), st.integers(-(1 << 31), (1 << 31) - 1))


@given(st.lists(IDS, max_size=30) | st.lists(st.integers(-1, 5), max_size=30))
def test_each_row_finds_its_number_among_the_distinct_ones(numbers: list[int]) -> None:
    values, places = distinct(np.array(numbers, dtype=np.int32))
    assert values == sorted(set(numbers))
    assert [values[place] for place in places.tolist()] == numbers
