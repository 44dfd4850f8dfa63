"""Events a day from all others, or of a day's length, are left out of every table and counted."""

from __future__ import annotations

import numpy as np

from stallscope.profiler.trace.far_times import DAY_NS, Near, far_finding, near_times
from stallscope.profiler.trace.timeline import Calls, Copies, Kernels, Ranges, empty


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def kernels(*rows: tuple[int, int, int]) -> Kernels:
    """Kernels of (start, end, launch), launched on thread 4."""
    start, end, launch = (ints(*column) for column in zip(*rows, strict=True))
    same = np.full(len(rows), 4, dtype=np.int32)
    return Kernels(start, end, same, same, same, launch, same, start)


def ranges(*rows: tuple[int, int]) -> Ranges:
    start, end = (ints(*column) for column in zip(*rows, strict=True))
    same = np.zeros(len(rows), dtype=np.int32)
    return Ranges(start, end, same, same, start)


def near(rows: Kernels, *more: Ranges) -> Near:
    copies: Copies = empty(Copies)
    calls: Calls = empty(Calls)
    return near_times(rows, copies, calls, more)


def test_a_trace_of_a_day_is_as_it_was() -> None:
    rows = kernels((0, 10, -1), (DAY_NS - 5, DAY_NS, -1))
    found = near(rows)
    assert found.kernels is rows
    assert list(far_finding(found)) == []


def test_what_is_just_past_a_day_is_left_out() -> None:
    """Median start 1,000: a day later is the last moment that is believed."""
    middle = 1_000
    rows = kernels(
        (middle, middle + 5, -1),
        (middle, middle + 6, -1),
        (middle, middle + 7, -1),
        (middle + DAY_NS, middle + DAY_NS, -1),
        (middle + DAY_NS + 1, middle + DAY_NS + 1, -1),
        (middle - DAY_NS - 1, middle, -1),
    )
    found = near(rows, ranges((middle, middle + DAY_NS + 1), (5, 9)))
    assert found.kernels.end_ns.tolist() == [1_005, 1_006, 1_007, middle + DAY_NS]
    assert found.ranges[0].end_ns.tolist() == [9]
    assert (found.lost_kernels, found.lost) == (2, 3)
    [finding] = far_finding(found)
    assert finding.what == "far_times"
    assert finding.reason == (
        "3 events were left out whose times cannot be right: more than a day from the median of "
        "the trace, or longer than a day; among them 2 of 6 kernels, so that the device was "
        "busy for longer, and idle for less, than the figures say"
    )


def test_a_launch_that_is_out_of_bounds_is_not_known() -> None:
    far = 5 * DAY_NS
    found = near(kernels((10, 20, far), (30, 40, 25), (far, far, 7)))
    assert found.kernels.launch_ns.tolist() == [-1, 25]
    assert found.kernels.thread.tolist() == [-1, 4]


def test_times_at_the_ends_of_64_bits_and_one_of_two_events() -> None:
    most = 2**63 - 1
    found = near(kernels((-most, most, -1), (3, 9, -1), (5, most, -1)))
    assert found.kernels.start_ns.tolist() == [3]
    assert near(kernels((0, 1, -1), (most, most, -1))).kernels.start_ns.tolist() == [0]
