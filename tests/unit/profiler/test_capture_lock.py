"""A capture that is being written is not taken from its writer; when that is gone, it is free."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stallscope.errors import InputError, UsageError
from stallscope.files import check_target, write_text
from stallscope.profiler.capture import Token
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.recorder import Recorder

# Records until told to end, or until killed.
HOLDS = """
import sys
from stallscope.profiler.recorder import Recorder

with Recorder(sys.argv[1], sample_hz=0) as recorder:
    recorder.token(1, 1)
    print("open", flush=True)
    sys.stdin.readline()
"""
# Opens, forks a child that outlives the Recorder, and closes.
FORKS = """
import os, sys
from stallscope.profiler.recorder import Recorder

recorder = Recorder(sys.argv[1], sample_hz=0)
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, b"1")
    sys.stdin.readline()
    os._exit(0)
os.read(read, 1)
recorder.close() if sys.argv[2] == "close" else None
print("open", flush=True)
os._exit(0)
"""


def started(script: str, path: Path, *arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(path), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.sqlite"


def refused(path: Path) -> None:
    with pytest.raises(InputError, match="a.sqlite: is being recorded by a Recorder that is still"):
        Recorder(path, force=True)
    with pytest.raises(InputError, match="--capture .*a.sqlite: is being recorded"):
        check_target(path, force=True, option="--capture")
    with pytest.raises(InputError, match="is being recorded"):
        write_text(path, "a report")


def test_a_second_recorder_in_the_same_process(path: Path) -> None:
    with Recorder(path, sample_hz=0) as first:
        first.token(1, 1)
        refused(path)
        first.token(2, 2)
    assert read_capture(path).tokens == (Token(1, 1), Token(2, 2))
    Recorder(path, force=True, sample_hz=0).close()
    assert read_capture(path).tokens == ()


def test_a_second_recorder_behind_a_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    with (
        Recorder(path, sample_hz=0),
        pytest.raises(InputError, match="link.sqlite: is being recorded"),
    ):
        Recorder(link, force=True)


def test_a_second_recorder_in_another_process(path: Path) -> None:
    with started(HOLDS, path) as other:
        refused(path)
        other.communicate("end\n")
    assert other.returncode == 0
    assert read_capture(path).tokens == (Token(1, 1),)
    assert read_capture(path).cut is None
    Recorder(path, force=True, sample_hz=0).close()


def test_a_killed_recorder_holds_nothing(path: Path) -> None:
    with started(HOLDS, path) as other:
        other.kill()
    Recorder(path, force=True, sample_hz=0).close()
    assert read_capture(path).tokens == ()
    with pytest.raises(UsageError, match="exists; add --force"):
        check_target(path, force=False, option="--capture")


@pytest.mark.parametrize("ends", ["close", "die"])
def test_a_child_that_lives_on_holds_nothing(path: Path, ends: str) -> None:
    with started(FORKS, path, ends) as parent:
        os.waitid(os.P_PID, parent.pid, os.WEXITED | os.WNOWAIT)
        Recorder(path, force=True, sample_hz=0).close()
        assert parent.stdin is not None
        parent.stdin.write("end\n")
    assert read_capture(path).tokens == ()
