"""Ranges that their program never closed.

nsys gives them the moment at which recording stopped as their end: an export of 2022.4.2 in which
three threads ended without closing five ranges has all five end at the length of its window, 256 ms
after the threads had ended. Their length says nothing.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from stallscope.profiler.trace.timeline import Ranges


def without_open(
    marks: Ranges, operators: Ranges, window_end_ns: int | None
) -> tuple[Ranges, Ranges, int]:
    """Leave out ranges that end with the recording; return how many those were.

    Where the window is not known, ranges of two threads that end at the very same nanosecond, the
    last at which any ends, are taken for such. One alone may be a last range that was closed.
    """
    last_ns = window_end_ns
    left_out = _ends(marks, last_ns), _ends(operators, last_ns)
    if not any(mask.any() for mask in left_out):
        last_ns = max((int(r.end_ns.max()) for r in (marks, operators) if len(r)), default=None)
        left_out = _ends(marks, last_ns), _ends(operators, last_ns)
        threads = np.concatenate((marks.thread[left_out[0]], operators.thread[left_out[1]]))
        if len(np.unique(threads)) < 2:
            return marks, operators, 0
    count = sum(int(mask.sum()) for mask in left_out)
    return _kept(marks, ~left_out[0]), _kept(operators, ~left_out[1]), count


def _ends(ranges: Ranges, at_ns: int | None) -> NDArray[np.bool_]:
    if at_ns is None:
        return np.zeros(len(ranges), dtype=np.bool_)
    ends: NDArray[np.bool_] = ranges.end_ns == at_ns
    return ends


def _kept(ranges: Ranges, mask: NDArray[np.bool_]) -> Ranges:
    if mask.all():
        return ranges
    return Ranges(*(getattr(ranges, field.name)[mask] for field in fields(Ranges)))
