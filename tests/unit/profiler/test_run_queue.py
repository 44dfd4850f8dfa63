"""Waits for a core: by hand on files of our own, and against the kernel's own on this machine."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from stallscope.profiler.run_queue import RunQueue

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
S = 1_000_000_000


class Proc:
    """A /proc of our own, with a clock that moves by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now_ns = 0

    def waits(self, **waited_ns: int) -> None:
        tasks = self.folder / "self" / "task"
        for task, waited in waited_ns.items():
            (tasks / task).mkdir(parents=True, exist_ok=True)
            (tasks / task / "schedstat").write_text(f"123456 {waited} 7\n")

    def ends(self, task: str) -> None:
        shutil.rmtree(self.folder / "self" / "task" / task)

    def queue(self) -> RunQueue:
        return RunQueue(self.folder, lambda: self.now_ns, lambda: 0)


def test_the_longest_wait_and_all_of_them(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    proc.waits(a=1_000, b=5 * S)
    queue = proc.queue()
    proc.now_ns = 2 * S
    proc.waits(a=1_000 + S, b=5 * S + S // 2)
    assert queue.longest() == pytest.approx(0.5)  # 1 of 2 s
    assert queue.threads() == pytest.approx(0.75)  # 1 + 0.5 of 2 s
    # One that is new has waited since it began; one that has ended is left out.
    proc.now_ns = 3 * S
    proc.waits(c=S // 4)
    proc.ends("b")
    assert queue.longest() == pytest.approx(0.25)
    assert queue.threads() == pytest.approx(0.25)
    # Ticks may make a wait seem longer than the time.
    proc.now_ns = 4 * S
    proc.waits(a=1_000 + 2 * S + 9)
    assert queue.longest() == 1.0


def test_a_costly_reading_is_left_out_until_it_is_a_thousandth(tmp_path: Path) -> None:
    """A reading that works 1 ms is due again after 1 s, however long it lasted."""
    proc, work_ns = Proc(tmp_path), [0]
    proc.waits(a=0)

    def work() -> int:
        work_ns[0] += 1_000_000
        return work_ns[0]

    queue = RunQueue(tmp_path, lambda: proc.now_ns, work)
    proc.now_ns = S - 1
    assert queue.longest() is None
    assert queue.threads() is None
    proc.now_ns = S
    assert queue.longest() == 0.0
    assert queue.threads() == 0.0


def test_a_system_without_the_figures_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Proc(tmp_path).queue().longest()
    (tmp_path / "self" / "task" / "1").mkdir(parents=True)
    uncounted = pytest.raises(OSError, match="no thread under .* has a schedstat that counts")
    with uncounted:
        Proc(tmp_path).queue().longest()
    # A kernel that has the file and counts nothing.
    (tmp_path / "self" / "task" / "1" / "schedstat").write_text("0 0 0\n")
    with uncounted:
        Proc(tmp_path).queue().longest()


@linux
def test_it_is_what_the_kernel_says_of_this_thread() -> None:
    """This thread shares a core with a child that spins there; its own file tells its wait."""
    own = Path(f"/proc/self/task/{os.getpid()}/schedstat")
    allowed = os.sched_getaffinity(0)
    core = min(allowed)
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {core})
        until = time.perf_counter() + 5
        while time.perf_counter() < until:
            pass
        os._exit(0)
    try:
        os.sched_setaffinity(0, {core})
        queue = RunQueue(Path("/proc"))
        before, start = int(own.read_text().split()[1]), time.perf_counter()
        while time.perf_counter() < start + 0.6:
            pass
        waited_s = (int(own.read_text().split()[1]) - before) * 1e-9
        longest, length_s = queue.longest(), time.perf_counter() - start
    finally:
        os.sched_setaffinity(0, allowed)
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert waited_s > 0.1
    assert longest == pytest.approx(waited_s / length_s, abs=0.1)
