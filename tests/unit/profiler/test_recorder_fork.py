"""A forked child neither writes nor closes what its parent records."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stallscope.profiler.capture import Token
from stallscope.profiler.capture_file import read_capture

# Puts rows, forks; the child does what the argument says, then ends as Python ends. What the child
# says comes before what the parent says.
FORKS = """
import os, sys
from stallscope.errors import CaptureError
from stallscope.profiler.recorder import Recorder

recorder = Recorder(sys.argv[1])
recorder.token(1, 1)
child = os.fork()
if child == 0:
    calls = {
        "close": [recorder.close],
        "put": [lambda: recorder.token(2, 2)],
        "put and close": [lambda: recorder.token(2, 2), recorder.close],
        "meta": [lambda: recorder.set_meta("a", 1)],
        "step": [lambda: recorder.decode(1).__enter__().__exit__(None, None, None)],
        "leave": [lambda: recorder.__exit__(SystemExit, SystemExit(), None), recorder.close],
        "nothing": [],
    }[sys.argv[2]]
    for call in calls:
        try:
            call()
        except CaptureError as error:
            print(error, flush=True)
    sys.exit()
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
recorder.token(3, 3)
recorder.close()
print("child", code, flush=True)
"""


@pytest.mark.parametrize(
    ("does", "is_told"),
    [
        ("close", False),
        ("put", True),
        ("put and close", True),
        ("meta", True),
        ("step", True),
        ("leave", False),
        ("nothing", False),
    ],
)
def test_the_file_is_the_parents(tmp_path: Path, does: str, is_told: bool) -> None:
    path = tmp_path / "a.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", FORKS, str(path), does], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    *told, end = done.stdout.splitlines()
    assert end == "child 0"
    assert len(told) == is_told
    if told:
        assert told[0].startswith(f"{path} is recorded by process ")
        assert told[0].endswith("make a Recorder in the child, with a file of its own")
    capture = read_capture(path)
    assert capture.tokens == (Token(1, 1), Token(3, 3))
    assert capture.cut is None
    assert [file.name for file in tmp_path.iterdir()] == ["a.sqlite"]


# The child ends after the parent has closed its capture and another one is being written there.
OUTLIVES = """
import os, sys
from stallscope.profiler.recorder import Recorder

recorder = Recorder(sys.argv[1], sample_hz=0)
recorder.token(1, 1)
recorder._writer._commit()
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.close(write)
    os.read(read, 1)
    recorder.close()
    sys.exit()
recorder.close()
with Recorder(sys.argv[1], sample_hz=0, force=True) as second:
    second.token(2, 2)
    second._writer._commit()
    os.close(write)
    os.waitpid(child, 0)
    print(os.path.exists(sys.argv[1] + "-wal"))
    second.token(3, 3)
"""


def test_a_child_that_lives_on_takes_nothing_from_the_next_recorder(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", OUTLIVES, str(path)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "True\n")
    assert read_capture(path).tokens == (Token(2, 2), Token(3, 3))


RECORDS_ITS_OWN = """
import os, sys
from stallscope.profiler.recorder import Recorder

with Recorder(sys.argv[1], sample_hz=0) as recorder:
    recorder.token(1, 1)
    if os.fork() == 0:
        with Recorder(sys.argv[1] + ".child", sample_hz=0) as own:
            own.token(2, 2)
        os._exit(0)
    os.wait()
"""


def test_a_child_may_record_into_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    subprocess.run([sys.executable, "-c", RECORDS_ITS_OWN, str(path)], check=True, timeout=60)
    assert read_capture(path).tokens == (Token(1, 1),)
    assert read_capture(f"{path}.child").tokens == (Token(2, 2),)
