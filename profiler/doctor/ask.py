"""Ask another program, and never wait longer for it than agreed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from stallscope.profiler.doctor.surroundings import Surroundings
from stallscope.profiler.evidence import CheckStatus

_LOOKS = "stallscope.profiler.doctor.looks"
_LONGEST = 200  # characters of a program's last words that a report repeats


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program printed, and why it cannot be used, if it cannot."""

    stdout: str
    problem: str | None
    timed_out: bool = False

    @property
    def status(self) -> CheckStatus:
        """What a program without an answer leaves: it may be slow, or it does not work."""
        return "unknown" if self.timed_out else "missing"


def ask(place: Surroundings, command: Sequence[str]) -> Answer:
    """Run a program that only prints; it and what it started are ended when its time is up."""
    try:
        process = subprocess.Popen(
            command,
            env=dict(place.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # a script's children hold its pipes; they must end with it
        )
    except OSError as error:
        return Answer("", f"cannot be started: {error.strerror or error}")
    with process:
        try:
            stdout, stderr = process.communicate(timeout=place.limit_s)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return Answer("", f"gave no answer within {place.limit_s:g} s", timed_out=True)
            raise
    if process.returncode != 0:
        return Answer(stdout, _failure(process.returncode, stderr or stdout))
    return Answer(stdout, None)


def look(place: Surroundings, what: str) -> dict[str, Any] | Answer:
    """Return what one of the looks found in a Python of its own, or how it failed.

    A process of its own: an import may take seconds, hang in a broken driver, or crash.
    """
    answer = ask(place, [sys.executable, "-P", "-m", _LOOKS, what])
    if answer.problem is not None:
        return answer
    try:
        found = json.loads(answer.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return Answer(answer.stdout, "printed what cannot be read")
    return found if isinstance(found, dict) else Answer(answer.stdout, "printed no facts")


def _failure(code: int, text: str) -> str:
    lines = text.strip().splitlines()
    ended = f"ended with {f'signal {-code}' if code < 0 else f'code {code}'}"
    return f"{ended}: {lines[-1].strip()[:_LONGEST]}" if lines else ended
