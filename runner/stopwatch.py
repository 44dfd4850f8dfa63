"""Marks between pieces of work, on the clock of the device that does it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Protocol

import torch

# A first call pays for kernel selection and fresh pages; the spread of the rest is noise from
# others on the machine, which only ever adds: the best pass is the device's own time.
MIN_PASSES = 3


class Stopwatch(Protocol):
    """`mark()` between pieces of work; `intervals_s()` gives the time of each."""

    def mark(self) -> None: ...

    def intervals_s(self) -> list[float]: ...


class HostStopwatch:
    """For work that is done when its call returns."""

    def __init__(self) -> None:
        self._marks: list[int] = []

    def mark(self) -> None:
        self._marks.append(time.perf_counter_ns())

    def intervals_s(self) -> list[float]:
        return [(b - a) / 1e9 for a, b in pairwise(self._marks)]


class CudaStopwatch:
    """For work that a stream does in its own time."""

    def __init__(self) -> None:
        self._marks: list[torch.cuda.Event] = []

    def mark(self) -> None:
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        self._marks.append(event)

    def intervals_s(self) -> list[float]:
        torch.cuda.synchronize()
        return [a.elapsed_time(b) / 1e3 for a, b in pairwise(self._marks)]


def stopwatch(device: str) -> Stopwatch:
    """Return a fresh stopwatch for "cpu" or "cuda"."""
    return CudaStopwatch() if device == "cuda" else HostStopwatch()


def passes_s(work: Callable[[], object], *, device: str, within_s: float) -> Iterator[float]:
    """Time one piece of work again and again: at least MIN_PASSES times, then until `within_s`."""
    started = time.perf_counter()
    passes = 0
    while passes < MIN_PASSES or time.perf_counter() - started < within_s:
        watch = stopwatch(device)
        watch.mark()
        work()
        watch.mark()
        yield watch.intervals_s()[0]
        passes += 1
