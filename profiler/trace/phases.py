"""Steps of a trace, from its marks, and which step each kernel belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache

import numpy as np

from stallscope.profiler.trace.marks import StepMark, step_mark
from stallscope.profiler.trace.timeline import (
    UNKNOWN,
    Bytes,
    Copies,
    Ints,
    Kernels,
    SmallInts,
    Trace,
)


class JoinedBy(IntEnum):
    """How a kernel was found to belong to a step."""

    NOTHING = 0
    LAUNCH = 1  # its launch call lies in the step's range, on the range's own thread
    OTHER_THREAD = 2  # its launch call lies in the step's range in time, on another thread
    TIME = 3  # no launch call is known; it began to run within the step's range


@dataclass(frozen=True, slots=True)
class MarkedStep:
    """A step as the engine marked it on the host."""

    start_ns: int
    end_ns: int
    thread: int
    mark: StepMark


# Steps that are under way, outermost first, each with the steps found within it so far.
_Open = list[tuple[MarkedStep, list[MarkedStep]]]


@dataclass(frozen=True, slots=True)
class Joined:
    """For each row the index of its step, −1 where it has none, and how that was found."""

    step: SmallInts
    how: Bytes


def marked_steps(trace: Trace) -> tuple[MarkedStep, ...]:
    """Return the ranges that mark steps, in order of time; of nested ones the innermost."""
    marks = trace.marks
    read = cache(step_mark)
    says_step = np.array([read(text, 1) is not None for text in trace.texts], dtype=bool)
    rows = np.flatnonzero(says_step[marks.text]) if len(marks) else np.empty(0, dtype=np.int64)
    rows = rows[np.lexsort((-marks.end_ns[rows], marks.start_ns[rows]))]
    found: list[MarkedStep] = []
    for row in rows.tolist():
        payload = None if marks.payload[row] == UNKNOWN else int(marks.payload[row])
        mark = read(trace.texts[marks.text[row]], payload)
        if mark is not None:
            start_ns, end_ns = int(marks.start_ns[row]), int(marks.end_ns[row])
            found.append(MarkedStep(start_ns, end_ns, int(marks.thread[row]), mark))
    return _innermost(found)


def _innermost(steps: Sequence[MarkedStep]) -> tuple[MarkedStep, ...]:
    """Drop a step in which others of its thread lie whole: it is a container.

    One that holds a single step of its phase marks the same step (a worker's mark around the
    scheduler's, say): what it knows and the inner one does not is kept.
    """
    kept: list[MarkedStep] = []
    for thread in sorted({s.thread for s in steps}):
        open_steps: _Open = []
        for step in (s for s in steps if s.thread == thread):
            _close_before(step.start_ns, open_steps, kept)
            while open_steps and open_steps[-1][0].end_ns < step.end_ns:
                _close(open_steps, kept)  # they overlap, so neither contains the other
            open_steps.append((step, []))
        while open_steps:
            _close(open_steps, kept)
    return tuple(sorted(kept, key=lambda s: (s.start_ns, -s.end_ns)))


def _close_before(start_ns: int, open_steps: _Open, kept: list[MarkedStep]) -> None:
    while open_steps and open_steps[-1][0].end_ns <= start_ns:
        _close(open_steps, kept)


def _close(open_steps: _Open, kept: list[MarkedStep]) -> None:
    """Settle the innermost open step: it is one itself, or the steps within it are."""
    step, within = open_steps.pop()
    if len(within) == 1 and within[0].mark.phase == step.mark.phase:
        within = [replace(within[0], mark=within[0].mark.completed(step.mark))]
    found = within or [step]
    if open_steps:
        open_steps[-1][1].extend(found)
    else:
        kept.extend(found)


def join(rows: Kernels | Copies, steps: Sequence[MarkedStep]) -> Joined:
    """Find each row's step: by its launch call, else by the time at which it began to run."""
    step = np.full(len(rows), UNKNOWN, dtype=np.int32)
    how = np.zeros(len(rows), dtype=np.uint8)
    if not steps:
        return Joined(step, how)
    launched = rows.launch_ns != UNKNOWN
    for thread in sorted({s.thread for s in steps}):
        mine = [i for i, s in enumerate(steps) if s.thread == thread]
        here = launched & (rows.thread == thread)
        _fill(step, how, here, rows.launch_ns, mine, steps, JoinedBy.LAUNCH)
    everyone = list(range(len(steps)))
    _fill(step, how, launched & (how == 0), rows.launch_ns, everyone, steps, JoinedBy.OTHER_THREAD)
    _fill(step, how, ~launched, rows.start_ns, everyone, steps, JoinedBy.TIME)
    return Joined(step, how)


def join_by_time(rows: Kernels | Copies, steps: Sequence[MarkedStep]) -> Joined:
    """Find each row's step by the time at which it began, where steps are of the device's time."""
    step = np.full(len(rows), UNKNOWN, dtype=np.int32)
    how = np.zeros(len(rows), dtype=np.uint8)
    everything = np.ones(len(rows), dtype=bool)
    _fill(step, how, everything, rows.start_ns, range(len(steps)), steps, JoinedBy.TIME)
    return Joined(step, how)


def _fill(
    step: SmallInts,
    how: Bytes,
    rows: np.ndarray,
    t_ns: Ints,
    candidates: Sequence[int],
    steps: Sequence[MarkedStep],
    by: JoinedBy,
) -> None:
    """Put the step that holds `t_ns` into those of `rows` that lie in one."""
    index = np.flatnonzero(rows)
    if not len(index) or not candidates:
        return
    if len(index) < len(t_ns):
        t_ns = t_ns[index]
    starts = np.array([steps[i].start_ns for i in candidates], dtype=np.int64)
    ends = np.array([steps[i].end_ns for i in candidates], dtype=np.int64)
    place = _last_begun(starts, t_ns)
    inside = (place >= 0) & (t_ns < ends[place])
    index, place = index[inside], place[inside]
    step[index] = np.array(candidates, dtype=np.int32)[place]
    how[index] = by


def _last_begun(starts: Ints, t_ns: Ints) -> Ints:
    """Return for each moment the place of the last start before or at it, −1 before the first."""
    if np.any(t_ns[1:] < t_ns[:-1]):
        return np.searchsorted(starts, t_ns, side="right") - 1
    # Sorted moments are many and starts are few: look the starts up instead.
    first = np.searchsorted(t_ns, starts, side="left")
    return np.repeat(np.arange(-1, len(starts)), np.diff(first, prepend=0, append=len(t_ns)))
