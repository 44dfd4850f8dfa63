"""Who keeps this process's CPUs busy: by hand on a text, and with processes of our own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stallscope.profiler.host import host_facts
from stallscope.profiler.own_cpu import OwnCpu
from stallscope.profiler.usable_cpus import UsableCpus, spent_by, usable_cpus

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
S = 1_000_000_000
SPIN = [sys.executable, "-c", "while True: pass"]


def stat(*cpus: tuple[int, int], hz: int) -> bytes:
    """A /proc/stat of CPUs that were busy and stolen for whole seconds, by several fields."""
    rows = [b"cpu 9 9 9 9 9 9 9 9 9 9"]
    for i, (busy_s, stolen_s) in enumerate(cpus):
        user, rest = (busy_s - 4) * hz, hz
        figures = (user, rest, rest, 12345, 678, rest, rest, stolen_s * hz, 5 * hz, 0)
        rows.append(f"cpu{i} {' '.join(map(str, figures))}".encode())
    return b"\n".join([*rows, b"intr 1 2 3", b"ctxt 4"])


@linux
def test_busy_is_all_but_idle_iowait_and_steal() -> None:
    text = stat((10, 1), (20, 2), (40, 4), hz=os.sysconf("SC_CLK_TCK"))
    assert spent_by(text, {b"cpu0", b"cpu2"}) == (pytest.approx(50), pytest.approx(5))
    with pytest.raises(ValueError, match="tells of 1 of the 2 CPUs"):
        spent_by(text, {b"cpu1", b"cpu3"})


@linux
def test_others_are_what_the_usable_cpus_ran_less_our_own(tmp_path: Path) -> None:
    hz, now, own = os.sysconf("SC_CLK_TCK"), [0], [100.0]
    (tmp_path / "stat").write_bytes(stat((10, 1), (20, 2), (40, 4), hz=hz))
    read = (tmp_path / "stat").read_bytes
    cpus = UsableCpus(read, (0, 1), lambda: own[0], clock=lambda: now[0])
    # In 4 s CPUs 0 and 1 ran 3 + 4 s, of which 5 were ours, and 2 s were stolen; CPU 2 is not ours.
    (tmp_path / "stat").write_bytes(stat((13, 2), (24, 3), (90, 9), hz=hz))
    now[0], own[0] = 4 * S, 105.0
    assert cpus.others() == pytest.approx((7 - 5) / 4)
    assert cpus.stolen() == pytest.approx(2 / 4)
    now[0] = 5 * S  # nothing ran, and our own clock is finer than ticks
    own[0] = 105.1
    assert (cpus.others(), cpus.stolen()) == (0.0, 0.0)
    (tmp_path / "stat").unlink()
    with pytest.raises(FileNotFoundError):
        cpus.others()
    assert cpus.stolen() is None


@linux
def test_processes_that_this_one_started_are_its_own() -> None:
    """A child that spins for 0.5 s, beside one that was started by a shell that has ended."""

    def wait_until(holds: Callable[[], bool]) -> None:
        until = time.monotonic() + 10
        while not holds():
            assert time.monotonic() < until
            time.sleep(0.01)

    own_cpu_s = OwnCpu()
    before_s = own_cpu_s()
    with subprocess.Popen(SPIN) as child:
        try:
            assert str(child.pid) in own_cpu_s.descendants()
            wait_until(lambda: own_cpu_s() - before_s > 0.3)
        finally:
            child.kill()
    # What it ran is counted when it is gone, too.
    assert own_cpu_s() - before_s > 0.3
    start = ["sh", "-c", '"$0" -c "while True: pass" >/dev/null 2>&1 & echo $!', sys.executable]
    stranger = int(subprocess.check_output(start))
    try:
        ours = set(own_cpu_s.descendants())
    finally:
        os.kill(stranger, 9)
    assert str(stranger) not in ours


@linux
def test_usable_cores_are_those_of_the_affinity_at_most() -> None:
    cores = host_facts()["usable_cores"]
    assert isinstance(cores, float)
    assert 0 < cores <= len(os.sched_getaffinity(0)) == len(usable_cpus())
