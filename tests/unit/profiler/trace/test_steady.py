"""The window of kernels leaves out long silences that next to nothing came before or after."""

from __future__ import annotations

import numpy as np
import pytest

from stallscope.profiler.trace.intervals import union
from stallscope.profiler.trace.marks import StepMark
from stallscope.profiler.trace.phases import MarkedStep
from stallscope.profiler.trace.steady import Window, steady_window
from stallscope.profiler.trace.step_rows import step_rows

MS = 1_000_000
NEVER = union(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def window(
    *kernels: tuple[int, int], steps: tuple[tuple[int, int], ...] = (), warmup: bool = False
) -> Window | None:
    """The window of kernels and steps, given in ms."""
    start, end = (np.array(times, dtype=np.int64) * MS for times in zip(*kernels, strict=True))
    mark = StepMark("decode", "ranges", warmup=warmup)
    marked = [MarkedStep(a * MS, b * MS, 0, mark) for a, b in steps]
    return steady_window(union(start, end), NEVER, step_rows(marked, (), rank=0))


def limits(found: Window | None) -> tuple[float, float, int]:
    assert found is not None
    return found.start_ns / MS, found.end_ns / MS, len(found.left_out)


def test_a_gap_after_the_first_kernel_is_start_up() -> None:
    # One kernel of 1 ms, 60 ms of nothing, 30 ms of work: 1 of 31 ms is 3 % of kernel time.
    assert limits(window((0, 1), (61, 91))) == (61, 91, 1)
    assert limits(window((0, 30), (90, 91))) == (0, 30, 1)
    # 2 of 32 ms are over 5 %: a pause of something that worked before and after.
    assert limits(window((0, 2), (62, 92))) == (0, 92, 0)
    # 19 ms are no long silence, nor are 21 of 110.
    assert limits(window((0, 1), (20, 50))) == (0, 50, 0)
    assert limits(window((0, 1), (22, 110))) == (0, 110, 0)


def test_what_the_host_does_before_the_first_kernel_of_its_steps_counts() -> None:
    assert limits(window((50, 80), steps=((0, 80),))) == (0, 80, 0)
    assert limits(window((0, 30), steps=((0, 80),))) == (0, 80, 0)


def test_steps_set_the_window_and_warm_up_does_not() -> None:
    assert limits(window((0, 5), (10, 20), (30, 40), steps=((9, 21), (29, 40)))) == (9, 40, 0)
    assert limits(window((0, 5), (10, 20), steps=((0, 5),), warmup=True)) == (0, 20, 0)
    assert limits(window((0, 5), steps=((10, 20),))) == (10, 20, 0)


def test_nothing_ran() -> None:
    assert steady_window(NEVER, NEVER, ()) is None


@pytest.mark.parametrize(("kernels", "says"), [((0, 1), "after the first"), ((90, 91), "before")])
def test_the_report_is_told_how_long(kernels: tuple[int, int], says: str) -> None:
    work = (61, 91) if kernels[0] == 0 else (0, 30)
    found = window(*sorted((kernels, work)))
    assert found is not None
    assert found.left_out[0].startswith("a gap of 0.06 s ")
    assert says in found.left_out[0]
