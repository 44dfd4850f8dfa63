"""Work that is done once for the same samples."""

from __future__ import annotations

from collections.abc import Sequence

from capture_builders import gauges

from stallscope.analyzers.load.kept import kept
from stallscope.profiler.capture import EngineSample


def test_the_same_tuple_is_worked_on_once() -> None:
    asked: list[int] = []

    @kept
    def count(samples: Sequence[EngineSample]) -> int:
        asked.append(len(samples))
        return len(samples)

    one, two, three = (gauges(waiting=(1,) * n) for n in (1, 2, 3))
    assert [count(one), count(two), count(one), count(two)] == [1, 2, 1, 2]
    assert asked == [1, 2]
    assert [count(three), count(one)] == [3, 1]  # two are kept, and one had to go
    assert asked == [1, 2, 3, 1]


def test_what_can_change_is_never_kept() -> None:
    @kept
    def count(samples: Sequence[EngineSample]) -> int:
        return len(samples)

    rows = list(gauges(waiting=(1, 1)))
    assert count(rows) == 2
    rows.pop()
    assert count(rows) == 1
    same = gauges(waiting=(1, 1))
    assert count(same) == count(tuple(list(same))) == 2
