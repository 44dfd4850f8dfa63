"""A run that was killed: everything up to the last moments is read, nothing is touched."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from stallscope.errors import CaptureError
from stallscope.profiler.capture import Capture, Cut, Request, Token
from stallscope.profiler.capture_file import is_capture, read_capture
from stallscope.profiler.capture_writer import write_capture
from stallscope.profiler.recorder import Recorder

# Prints the time before each step, so that the test knows how far it came.
RECORDS = """
import sys, time
from stallscope.profiler.recorder import Recorder

recorder = Recorder(sys.argv[1])
while True:
    print(recorder.now(), flush=True)
    with recorder.decode(1):
        time.sleep(0.002)
"""


def kill_after(path: Path, run_s: float) -> list[int]:
    """Record in a child process, kill it, and return the times that it printed."""
    child = subprocess.Popen(
        [sys.executable, "-c", RECORDS, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    times = [int(child.stdout.readline())]
    while times[-1] < times[0] + run_s * 1e9:
        times.append(int(child.stdout.readline()))
    os.kill(child.pid, signal.SIGKILL)
    rest, _ = child.communicate()
    assert child.returncode == -signal.SIGKILL
    return times + [int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()}


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    path = tmp_path_factory.mktemp("killed") / "run.sqlite"
    return path, kill_after(path, run_s=1.5)


def copy_of(path: Path, folder: Path, *suffixes: str) -> Path:
    for suffix in suffixes:
        shutil.copyfile(f"{path}{suffix}", folder / f"{path.name}{suffix}")
    return folder / path.name


def test_everything_but_the_last_half_second_is_read(killed: tuple[Path, list[int]]) -> None:
    path, times = killed
    capture = read_capture(path)
    ends = [step.end_ns for step in capture.steps]
    assert times[-1] - ends[-1] <= 500_000_000
    assert [step.id for step in capture.steps] == list(range(len(ends)))
    # Each step began after its time was printed, and the next after it had ended.
    assert len(ends) >= sum(t_ns <= times[-1] - 500_000_000 for t_ns in times) - 1 > 0
    assert capture.device_samples
    clock_ns = capture.meta["clock"]["monotonic_ns"]
    last_row_ns = max(ends[-1], capture.device_samples[-1].t_ns)
    seconds = (last_row_ns - clock_ns) / 1e9
    since = "recording began, any warm-up included"
    assert capture.cut == Cut(
        last_row_ns, f"cut {seconds:.1f} s after {since}: the run did not end"
    )


def test_reading_changes_nothing_beside_the_file(killed: tuple[Path, list[int]]) -> None:
    path, _ = killed
    before = contents(path.parent)
    assert set(before) == {"run.sqlite", "run.sqlite-wal", "run.sqlite-shm"}
    assert is_capture(path)
    assert read_capture(path).steps
    assert contents(path.parent) == before


def test_a_read_only_folder_is_read_too(killed: tuple[Path, list[int]], tmp_path: Path) -> None:
    copy = copy_of(killed[0], tmp_path, "", "-wal", "-shm")
    for file in (*tmp_path.iterdir(), tmp_path):
        file.chmod(0o555 if file.is_dir() else 0o444)
    try:
        assert read_capture(copy).steps == read_capture(killed[0]).steps
    finally:
        tmp_path.chmod(0o755)


def test_two_copies_read_alike_without_the_shm(
    killed: tuple[Path, list[int]], tmp_path: Path
) -> None:
    path, _ = killed
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = read_capture(copy_of(path, tmp_path / "a", "", "-wal"))
    second = read_capture(copy_of(path, tmp_path / "b", "", "-wal", "-shm"))
    assert first == second == read_capture(path)


def test_a_lost_wal_is_said_where_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    kill_after(path, run_s=0.3)
    Path(f"{path}-wal").unlink()
    Path(f"{path}-shm").unlink()
    assert is_capture(path)
    with pytest.raises(CaptureError, match=r"or they are in run.sqlite-wal, which is missing"):
        read_capture(path)


@pytest.fixture
def without_wal(tmp_path: Path) -> Path:
    """A cut capture whose rows had all moved to the main file, and whose -wal is gone."""
    path = tmp_path / "run.sqlite"
    tokens = tuple(Token(number, number * 1_000_000_000) for number in range(5000))
    write_capture(path, Capture(tokens=tokens, cut=Cut(0, "")))
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode=WAL")
    assert [file.name for file in tmp_path.iterdir()] == ["run.sqlite"]
    return path


def test_a_lost_wal_is_said_where_older_rows_are_left(without_wal: Path) -> None:
    left = read_capture(without_wal)
    assert len(left.tokens) == 5000
    assert left.cut == Cut(
        4_999_000_000_000,
        "cut 4999.0 s after its first row: the run did not end; its -wal file is missing, "
        "so later rows may be lost",
    )


def test_a_lost_wal_is_said_where_pages_are_missing(without_wal: Path) -> None:
    without_wal.write_bytes(without_wal.read_bytes()[: 12 * 4096])
    with pytest.raises(CaptureError, match=r"its rows are in run.sqlite-wal, which is missing"):
        read_capture(without_wal)


def test_a_run_that_goes_on_is_read_as_of_now(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    child = subprocess.Popen([sys.executable, "-c", RECORDS, str(path)], stdout=subprocess.DEVNULL)
    try:
        deadline_s = time.monotonic() + 20
        while time.monotonic() < deadline_s and not Path(f"{path}-wal").exists():
            time.sleep(0.05)
        counts = []
        for _ in range(3):
            time.sleep(0.5)
            counts.append(len(read_capture(path).steps))
        assert 0 < counts[0] < counts[1] < counts[2]
    finally:
        child.kill()
        child.wait()


def test_requests_that_run_have_the_tokens_that_were_noted(tmp_path: Path) -> None:
    """Their rows are as of their first token; what one made since stands in rows of its own."""
    path = tmp_path / "run.sqlite"
    recorder = Recorder(path)
    recorder.request(Request(0, 5, 6, 7, 20, 16, 0, 2, 0, 0, "finished"))
    recorder.request(Request(1, 5, 6, 7, None, 16, 0, 1, 0, 0, "running"))
    recorder.request(Request(2, 5, None, None, None, 16, 0, 0, 0, 0, "waiting"))
    for id, t_ns in ((0, 7), (1, 7), (0, 20), (1, 20), (1, 30)):
        recorder.token(id, t_ns)
    deadline = time.monotonic() + 20
    while len(read_capture(path).tokens) < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    seen = read_capture(path)
    assert seen.cut is not None
    assert [row.output_tokens for row in seen.requests] == [2, 3, 0]
    recorder.close()
    assert [row.output_tokens for row in read_capture(path).requests] == [2, 1, 0]  # as written
