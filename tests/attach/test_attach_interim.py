"""What is kept of a watch before its end: when, where, and never over somebody's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.errors import CaptureError
from stallscope.profiler.attach.interim import Interim, put_capture
from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.capture_file import read_capture


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def seen(*seconds: int) -> Capture:
    rows = tuple(EngineSample(s * 10**9, "vllm", "running", 4.0) for s in seconds)
    return Capture(engine_samples=rows, meta={"metrics_page": {}})


def test_it_is_due_after_five_seconds_and_rests_three_hundred_times_as_long_as_it_took(
    tmp_path: Path,
) -> None:
    clock = Clock()
    interim = Interim(tmp_path / "x.sqlite", clock=clock)

    def slowly(took_s: float) -> Capture:
        clock.now_s += took_s
        return seen(0, 1)

    clock.now_s = 104.9
    assert not interim.is_due
    clock.now_s = 105.0
    assert interim.is_due
    interim.keep(lambda: slowly(0.01))  # 300 times that are 3 s: five are the least
    clock.now_s = 110.0
    assert not interim.is_due
    clock.now_s = 110.02
    assert interim.is_due
    interim.keep(lambda: slowly(0.5))  # until 110.52; due at 110.52 + 150
    clock.now_s = 260.5
    assert not interim.is_due
    clock.now_s = 260.53
    assert interim.is_due


def test_what_is_kept_is_cut_and_says_when(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    interim = Interim(path)
    interim.keep(lambda: seen(7, 8))
    interim.keep(lambda: seen(7, 8, 19))  # and replaces what was kept
    capture = read_capture(path)
    assert [s.t_ns for s in capture.engine_samples] == [7 * 10**9, 8 * 10**9, 19 * 10**9]
    assert capture.cut is not None
    assert capture.cut.note == "cut 12.0 s after its first reading: the watch did not end"
    assert [file.name for file in tmp_path.iterdir()] == ["x.sqlite"]
    interim.drop()  # it is the file that the whole stands in
    assert path.exists()


def test_a_file_that_stands_there_is_left_and_what_was_seen_is_kept_beside_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.sqlite"
    path.write_text("mine")
    interim = Interim(path)
    interim.keep(lambda: seen(0))
    assert interim.path == tmp_path / "x.sqlite.part"
    assert read_capture(interim.path).cut is not None
    assert path.read_text() == "mine"
    interim.drop()
    assert not interim.path.exists()


def test_a_file_beside_it_is_left_too(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    for name in ("x.sqlite", "x.sqlite.part"):
        (tmp_path / name).write_text("mine")
    interim = Interim(path)
    assert interim.failure == f"{path} and x.sqlite.part exist"
    assert not interim.is_due
    interim.drop()
    assert interim.path.read_text() == "mine"


def test_what_something_else_writes_there_meanwhile_is_left(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    clock = Clock()
    interim = Interim(path, clock=clock)
    interim.keep(lambda: seen(0))
    assert interim.is_ours
    path.write_text("somebody's")
    assert not interim.is_ours
    interim.keep(lambda: seen(0, 1))
    assert path.read_text() == "somebody's"
    assert interim.failure == f"{path} was written by something else"
    clock.now_s += 1000
    assert not interim.is_due


def test_a_file_that_is_gone_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    interim = Interim(path)
    interim.keep(lambda: seen(0))
    path.unlink()
    assert not interim.is_ours
    interim.keep(lambda: seen(0, 1))
    assert interim.is_ours
    assert interim.failure is None


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "x.sqlite"
    link.symlink_to(tmp_path / "elsewhere" / "y.sqlite")
    interim = Interim(link)
    interim.keep(lambda: seen(0))
    interim.keep(lambda: seen(0, 1))
    assert link.is_symlink()
    assert len(read_capture(link).engine_samples) == 2


def test_a_folder_that_is_gone_is_said_once_and_ends_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    interim = Interim(folder / "x.sqlite")
    folder.rmdir()
    interim.keep(lambda: seen(0))
    assert interim.failure is not None
    assert interim.failure.startswith(f"{folder}/x.sqlite cannot be written (")
    assert "\n" not in interim.failure


def test_what_cannot_be_put_leaves_what_stood_there(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    put_capture(path, seen(0))
    wrong = Capture(engine_samples=(EngineSample(0, "vllm", "running", None),))  # type: ignore[arg-type]
    with pytest.raises(CaptureError, match="x.sqlite"):
        put_capture(path, wrong)
    assert len(read_capture(path).engine_samples) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["x.sqlite"]
