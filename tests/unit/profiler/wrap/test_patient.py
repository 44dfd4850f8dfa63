"""Signals that come while a report is being written: real ones, to a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

PROGRAM = """
import time
from stallscope.profiler.wrap import patient
patient.GRACE_S = 0.5
with patient.patient():
    print("ready", flush=True)
    end = time.monotonic() + {seconds}
    while time.monotonic() < end:
        time.sleep(0.01)
    print("done", flush=True)
time.sleep(0.3)
print("left", flush=True)
"""


def ended(
    seconds: float, at: tuple[float, ...], number: int = signal.SIGTERM
) -> tuple[int, list[str]]:
    """Run for so long, sending a signal at those seconds; return the code and what was printed."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(seconds=seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    begun = time.monotonic()
    for moment in at:
        time.sleep(max(0.0, begun + moment - time.monotonic()))
        process.send_signal(number)
    rest, _ = process.communicate(timeout=60)
    return process.returncode, [first.strip(), *rest.split()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_in_a_row_are_one_wish_and_the_work_is_finished(number: signal.Signals) -> None:
    # The last one comes after the block: the process is at its end then, and its code is kept.
    assert ended(0.4, (0.0, 0.03, 0.1, 0.5), number) == (0, ["ready", "done", "left"])


def test_who_still_asks_later_is_heard() -> None:
    assert ended(30, (0.0, 0.1, 1.0)) == (-signal.SIGTERM, ["ready"])


def test_without_any_signal_the_next_one_after_the_block_ends_us() -> None:
    assert ended(0.1, (0.25,)) == (-signal.SIGTERM, ["ready", "done"])
