"""Rows of one category in columns, put together list by list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from stallscope.profiler.kineto.events import NO_ARGS, Args, Event, Number
from stallscope.profiler.trace.timeline import UNKNOWN, Floats, Ints

_DIGITS = re.compile(r"-?\d+")
_INT64_END = 1 << 63
_MOST_US = 4.5e15  # a moment and a length add up to nanoseconds in 64 bits; 2112 as a wall clock


class Index(dict[object, int]):
    """Numbers things in the order in which they are first asked for."""

    def __missing__(self, key: object) -> int:
        number = self[key] = len(self)
        return number


class Threads(dict[object, "Threads.Of"]):
    """Numbers threads by process and thread id: `threads[pid][tid]`."""

    class Of(dict[object, int]):
        """The threads of one process."""

        def __init__(self, pid: object, known: list[tuple[object, object]]) -> None:
            super().__init__()
            self._pid, self._known = pid, known

        def __missing__(self, tid: object) -> int:
            number = self[tid] = len(self._known)
            self._known.append((self._pid, tid))
            return number

    def __init__(self) -> None:
        super().__init__()
        self.known: list[tuple[object, object]] = []

    def __missing__(self, pid: object) -> Threads.Of:
        found = self[pid] = Threads.Of(pid, self.known)
        return found


@dataclass(slots=True)
class Column:
    """Parts of one column."""

    parts: list[Ints] = field(default_factory=list)

    def add(self, values: Sequence[int]) -> None:
        self.parts.append(np.array(values, dtype=np.int64))

    def whole(self) -> Ints:
        return np.concatenate(self.parts) if self.parts else np.empty(0, dtype=np.int64)


@dataclass(slots=True)
class Times:
    """When rows begin and end, nanoseconds."""

    start: Column = field(default_factory=Column)
    end: Column = field(default_factory=Column)

    def add(self, rows: Sequence[Event]) -> None:
        start_ns = nanoseconds(np.array([e.ts for e in rows], dtype=np.float64))
        lengths = np.minimum([e.dur or 0.0 for e in rows], _MOST_US)
        self.start.parts.append(start_ns)
        self.end.parts.append(start_ns + np.rint(lengths * 1e3).astype(np.int64))


def nanoseconds(us: Floats) -> Ints:
    """Return times in microseconds as nanoseconds, exact where the float still tells them apart.

    A product with 1,000 would round a second time: whole and fractional part go apart.
    """
    us = np.clip(us, -_MOST_US, _MOST_US)
    whole = np.floor(us)
    return whole.astype(np.int64) * 1000 + np.rint((us - whole) * 1e3).astype(np.int64)


def args_of(rows: Iterable[Event]) -> list[Args]:
    """Return each row's args."""
    return [e.args or NO_ARGS for e in rows]


def integers(values: list[Number]) -> Ints:
    """Return integers, of texts the first one they hold ("stream 7"), −1 for anything else."""
    found = np.array(values)
    if found.dtype == np.int64:
        return found
    return np.array([integer(value) for value in values], dtype=np.int64)


def integer(value: Number) -> int:
    """Return one integer as `integers` does."""
    if isinstance(value, str):
        found = _DIGITS.search(value)
        value = None if found is None else int(found[0])
    if value is None or value != value or abs(value) >= _INT64_END:
        return UNKNOWN
    return int(value)
