"""What a recorder tells the tracer around it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from importlib import metadata
from itertools import count
from pathlib import Path

import pytest

from stallscope.profiler.recorder import Recorder
from stallscope.profiler.wrap.handshake import FOLDER, Announced, announce, announced


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    monkeypatch.setenv(FOLDER, str(made))
    return made


def test_recorder_tells_its_file_and_clock(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before_ns = time.perf_counter_ns(), time.time_ns()
    with Recorder("run.sqlite", sample_hz=0):
        (said,) = announced(folder)
    after_ns = time.perf_counter_ns(), time.time_ns()
    assert said.capture == tmp_path / "run.sqlite"
    assert said.pid == os.getpid()
    assert said.nvtx == metadata.version("nvtx")
    assert before_ns[0] <= said.clock_ns <= after_ns[0]
    assert before_ns[1] <= said.unix_ns <= after_ns[1]
    # Two clocks of one machine: what lies between them is the same at any time.
    between_ns = before_ns[1] - before_ns[0]
    assert abs((said.unix_ns - said.clock_ns) - between_ns) < 5_000_000
    assert said.error_ns < 1_000_000


def test_the_clock_is_read_on_both_sides_of_the_wall_clock(folder: Path, tmp_path: Path) -> None:
    ticks = iter([0, 900, 1000, 1010, 2000, 2900, 3000, 3900, 4000, 4900])  # the second is closest

    def clock() -> int:
        return next(ticks)

    announce(tmp_path / "x.sqlite", clock)
    (said,) = announced(folder)
    assert (said.clock_ns, said.error_ns) == (1005, 5)


def test_records_come_in_the_order_of_time(folder: Path) -> None:
    steady = count(step=10)
    for name in ("/a.sqlite", "/b.sqlite", "/c.sqlite"):
        announce(Path(name), lambda: next(steady))
    assert [str(said.capture) for said in announced(folder)] == [
        "/a.sqlite",
        "/b.sqlite",
        "/c.sqlite",
    ]


def test_without_a_tracer_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    monkeypatch.chdir(tmp_path)
    announce(tmp_path / "x.sqlite", time.perf_counter_ns)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path / "gone"))
    with Recorder(tmp_path / "run.sqlite", sample_hz=0):
        pass
    assert (tmp_path / "run.sqlite").exists()


def broken() -> Iterator[str]:
    whole = {"capture": "/a", "pid": 1, "clock_ns": 2, "unix_ns": 3, "error_ns": 4, "nvtx": None}
    yield "{"
    yield "[]"
    for name in ("capture", "pid", "clock_ns", "unix_ns", "error_ns"):
        yield json.dumps({key: value for key, value in whole.items() if key != name})
    yield json.dumps(whole | {"clock_ns": 1.5})
    yield json.dumps(whole | {"pid": True})


def test_what_others_leave_there_is_passed_over(folder: Path) -> None:
    for i, text in enumerate(broken()):
        (folder / f"{i}.json").write_text(text)
    (folder / "half.part").write_text("{")
    assert announced(folder) == ()
    whole = '{"capture": "/a", "pid": 1, "clock_ns": 2, "unix_ns": 3, "error_ns": 4}'
    (folder / "whole.json").write_text(whole)
    assert announced(folder) == (Announced(Path("/a"), 1, 2, 3, 4, None),)
