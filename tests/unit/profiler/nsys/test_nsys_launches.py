"""Calls found by correlation id, against a search through all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallscope.profiler.nsys import launches
from stallscope.profiler.nsys.launches import match, match_processes

NEAR = st.lists(st.integers(0, 12), max_size=20)
FAR = st.lists(st.integers(0, 12).map(lambda k: k * 300_000_000), max_size=20)


def ids(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint32)


def searched(wanted: list[int], called: list[int]) -> list[int]:
    return [called.index(one) if one and one in called else -1 for one in wanted]


@given(st.one_of(st.tuples(NEAR, NEAR), st.tuples(FAR, FAR)))
def test_the_first_call_with_an_id_is_found(lists: tuple[list[int], list[int]]) -> None:
    wanted, called = lists
    assert match(ids(wanted), ids(called)).tolist() == searched(wanted, called)


def test_blocks_of_rows_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "_ROWS_AT_ONCE", 3)
    called = [5, 9, 5, 7, 8, 9, 1, 2]
    wanted = [9, 5, 1, 4, 2, 7, 0, 8]
    assert match(ids(wanted), ids(called)).tolist() == [1, 0, 6, -1, 7, 3, -1, 4]


PROCESSES = st.integers(-1, 2)
ROWS = st.lists(st.tuples(st.integers(0, 6), PROCESSES), max_size=20)


@given(ROWS, ROWS)
def test_ids_are_a_processes_own(
    wanted: list[tuple[int, int]], called: list[tuple[int, int]]
) -> None:
    found = match_processes(
        ids([i for i, _ in wanted]),
        np.array([p for _, p in wanted], dtype=np.int32),
        ids([i for i, _ in called]),
        np.array([p for _, p in called], dtype=np.int32),
    )
    expected = []
    for row in wanted:
        rows = [i for i, other in enumerate(called) if row[0] and other == row]
        expected.append(rows[0] if rows and row[1] != -1 else -1)
    assert found.tolist() == expected
