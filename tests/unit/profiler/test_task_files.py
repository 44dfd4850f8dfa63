"""A file of every thread: kept open, let go of, and never another thread's."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

from stallscope.profiler.task_files import TaskFiles

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def put(folder: Path, task: int, text: str) -> None:
    (folder / str(task)).mkdir(exist_ok=True)
    (folder / str(task) / "figures").write_text(text)


def held() -> int:
    return len(os.listdir("/proc/self/fd"))


@linux
def test_each_is_read_anew_and_what_ended_is_let_go_of(tmp_path: Path) -> None:
    put(tmp_path, 1, "a")
    put(tmp_path, 2, "b")
    files, before = TaskFiles(str(tmp_path), "figures"), held()
    assert dict(files.read()) == {"1": b"a", "2": b"b"}
    assert held() == before + 2
    put(tmp_path, 1, "c")
    shutil.rmtree(tmp_path / "2")
    (tmp_path / "3").mkdir()  # it ended between the list and its file
    assert dict(files.read()) == {"1": b"c"}
    assert held() == before + 1
    files.close()
    assert held() == before
    with pytest.raises(FileNotFoundError):
        list(TaskFiles(str(tmp_path / "none"), "figures").read())


@linux
def test_of_many_threads_some_files_stay_open_and_all_are_read(tmp_path: Path) -> None:
    for task in range(100):
        put(tmp_path, task, str(task))
    files, before = TaskFiles(str(tmp_path), "figures"), held()
    for _ in range(2):
        assert dict(files.read()) == {str(task): str(task).encode() for task in range(100)}
        assert held() == before + 32
    files.close()


@linux
def test_threads_of_this_process_come_and_go() -> None:
    files = TaskFiles("/proc/self/task", "comm")
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    task = str(thread.native_id)
    assert task in dict(files.read())
    end.set()
    thread.join()
    while os.path.exists(f"/proc/self/task/{task}"):  # Python is done with it before the kernel
        pass
    assert task not in dict(files.read())
    assert str(threading.main_thread().native_id) in dict(files.read())
    files.close()
