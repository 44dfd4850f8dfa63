"""Run a command in the foreground as a shell would: its output, its signals, its exit code."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from stallscope.errors import InputError
from stallscope.profiler.wrap.patient import ENDING, took_signal


def follow(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a command to its end and return its exit code, as a shell tells it.

    Signals that would end us go to the command instead, and we go on after it.

    A terminal sends Ctrl-C to the command itself too; elsewhere the command gets a group of its
    own, so that it hears of each signal once. A command that ends in peace although it was
    interrupted has the code of the signal.
    """
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    running: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int) -> None:
        if has_terminal and number == signal.SIGINT:
            return
        for process in running:
            process.send_signal(number)

    with _caught(pass_on) as signals:
        group = None if has_terminal else 0
        try:
            process = subprocess.Popen(command, env=dict(environ), process_group=group)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"{command[0]}: cannot be started: {reason}") from error
        running.append(process)
        for number in tuple(signals):  # that came while it was being started
            pass_on(number)
        code = process.wait()
    if code <= 0 and (code or signals):
        return 128 + (-code or signals[0])
    return code


@contextmanager
def _caught(pass_on: Callable[[int], None]) -> Iterator[list[int]]:
    """Hand signals over for as long as the block lasts; yield the list of those that came."""
    came: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        came.append(number)
        took_signal()
        pass_on(number)

    heard = [n for n in ENDING if signal.getsignal(n) is not signal.SIG_IGN]  # nohup ignores one
    before = {number: signal.signal(number, handle) for number in heard}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
