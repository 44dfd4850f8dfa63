"""Finish what was begun although somebody has asked for the end: a report is worth a second."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Whoever asks twice means one end: a terminal that closes, a service manager, an impatient hand.
GRACE_S = 5.0


_heard: list[list[float]] = []  # of the blocks we are in, when they heard signals


@contextmanager
def patient() -> Iterator[None]:
    """Let signals that would end us pass for GRACE_S seconds from the first one on.

    What comes later ends us as it would have. Blocks inside may take signals for themselves if they
    say so (`took_signal`). After the block we end anyway: where a signal came, no more are heard.
    """
    before = {n: signal.getsignal(n) for n in ENDING}
    listened = [n for n, handler in before.items() if handler is not signal.SIG_IGN]  # nohup
    came: list[float] = []

    def handle(number: int, frame: FrameType | None) -> None:
        came.append(time.monotonic())
        if came[-1] - came[0] > GRACE_S:
            signal.signal(number, before[signal.Signals(number)] or signal.SIG_DFL)
            os.kill(os.getpid(), number)

    for number in listened:
        signal.signal(number, handle)
    _heard.append(came)
    try:
        yield
    finally:
        _heard.pop()
        for number in listened:
            after = signal.SIG_IGN if came else before[number] or signal.SIG_DFL
            signal.signal(number, after)


def took_signal() -> None:
    """Tell the patient block around that a signal asked for the end."""
    if _heard:
        _heard[-1].append(time.monotonic())
