"""The time of a forward pass: the call's on a CPU, the device's own on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch

Clock = Callable[[], int]


class ForwardTimer(Protocol):
    """Marks the start and the end of a forward pass; reads the time once its results are here."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def elapsed_ns(self) -> int: ...


class CallTimer:
    """Times the call; on a CPU it returns when the work is done."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start_ns = self._end_ns = 0

    def start(self) -> None:
        self._start_ns = self._clock()

    def stop(self) -> None:
        self._end_ns = self._clock()

    def elapsed_ns(self) -> int:
        return self._end_ns - self._start_ns


class EventTimer:
    """Times on the device. Copying the sampled tokens to the host has waited for the end already;
    only a step that samples nothing waits here."""

    def __init__(self) -> None:
        self._start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]

    def start(self) -> None:
        self._start.record()

    def stop(self) -> None:
        self._end.record()

    def elapsed_ns(self) -> int:
        self._end.synchronize()
        milliseconds: float = self._start.elapsed_time(self._end)
        return round(milliseconds * 1e6)
