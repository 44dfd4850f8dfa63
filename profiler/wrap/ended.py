"""How a traced command ended, where it did not end well: what was traced may then be a part."""

from __future__ import annotations

import signal
from dataclasses import replace

from stallscope.profiler.capture import Capture, Event

_SIGNALLED = 128  # a shell's code of what a signal ended is this and the signal's number


def with_end(capture: Capture, code: int, *, duration_s: int | None = None) -> Capture:
    """Add a check that says how the command failed; `code` is as a shell tells it, 0 if it did not.

    Codes above 128 are taken for signals, as nsys hands them on. After `duration_s`, if given, nsys
    itself ends the command by SIGTERM: that is no failure.
    """
    stopped = duration_s is not None and code == _SIGNALLED + signal.SIGTERM
    if code == 0 or stopped:
        return capture
    said = Event(0, "check", None, {"sentence": _sentence(code)})
    return replace(capture, events=(said, *capture.events))


def _sentence(code: int) -> str:
    try:
        name = signal.Signals(code - _SIGNALLED).name
    except ValueError:
        how = f"ended with code {code}"
    else:
        how = f"was ended by signal {code - _SIGNALLED} ({name})"
    return f"The command {how}. What follows is of the time until then."
