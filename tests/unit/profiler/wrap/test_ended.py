"""The report of a command that failed says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.wrap.ended import with_end
from stallscope.profiler.wrap.follow import follow

BEFORE = Event(5, "check", None, {"sentence": "Said before."})


def sentences(code: int) -> list[str]:
    capture = with_end(Capture(events=(BEFORE,)), code)
    return [event.data["sentence"] for event in capture.events]


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("exit 7", "The command ended with code 7."),
        ("kill -9 $$", "The command was ended by signal 9 (SIGKILL)."),
        ("kill -15 $$", "The command was ended by signal 15 (SIGTERM)."),
        ("exit 255", "The command ended with code 255."),  # 255 − 128 is no signal
    ],
)
def test_a_failed_command_is_said_to_have_failed(script: str, says: str) -> None:
    first, second = sentences(follow(["sh", "-c", script], os.environ))
    assert first == f"{says} What follows is of the time until then."
    assert second == "Said before."


def test_of_a_command_that_ended_well_nothing_is_said() -> None:
    assert sentences(follow(["true"], os.environ)) == ["Said before."]


def test_that_nsys_itself_ends_a_command_after_a_duration_is_no_failure() -> None:
    nothing = Capture()
    assert with_end(nothing, 143, duration_s=5) is nothing
    assert len(with_end(nothing, 143).events) == 1
    assert len(with_end(nothing, 137, duration_s=5).events) == 1


def test_the_report_says_it(nsys: str, tmp_path: Path) -> None:
    """Through the command itself, with the real nsys."""
    line = [sys.executable, "-m", "stallscope", "nsys", "-o", str(tmp_path / "report.txt"), "--"]
    done = subprocess.run(
        [*line, "sh", "-c", "exit 7"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 7, done.stderr
    assert "The command ended with code 7." in " ".join(
        (tmp_path / "report.txt").read_text().split()
    )
