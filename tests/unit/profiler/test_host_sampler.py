"""Host samples against what the kernel says by another way."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from stallscope.profiler import machine_memory
from stallscope.profiler.host_fields import CpuCores, host_fields, other_cores
from stallscope.profiler.host_sampler import HostField, HostSampler
from stallscope.profiler.proc_files import (
    FileFigure,
    OpenFile,
    busy_s,
    meminfo_bytes,
    pressure,
    rss_bytes,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def values_now() -> dict[str, float]:
    sampler = HostSampler(host_fields())
    sampler.probe()
    rows = list(sampler.sample(5))
    sampler.close()
    assert {(row.t_ns, row.device) for row in rows} == {(5, "host")}
    return {row.name: row.value for row in rows}


@linux
def test_rss_is_that_of_statm_and_follows_an_allocation() -> None:
    def statm_bytes() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize()

    before = values_now()["host_rss_bytes"]
    assert before == pytest.approx(statm_bytes(), abs=4 << 20)
    block = bytearray(os.urandom(1 << 20) * 64)
    after = values_now()["host_rss_bytes"]
    assert after - before == pytest.approx(len(block), abs=8 << 20)


@linux
def test_memory_is_that_of_meminfo_or_less_in_a_container() -> None:
    meminfo = {
        line.split(":")[0]: int(line.split()[1]) * 1024
        for line in Path("/proc/meminfo").read_text().splitlines()
    }
    now = values_now()
    assert 0 < now["host_memory_total_bytes"] <= meminfo["MemTotal"]
    assert 0 < now["host_memory_available_bytes"] <= now["host_memory_total_bytes"]
    assert now["host_memory_available_bytes"] <= meminfo["MemAvailable"] + (1 << 30)


def test_cpu_cores_tell_work_from_sleep() -> None:
    """However little of a core this process gets: what it used over the time that passed."""

    def cores(*, spin: bool) -> tuple[float, float]:
        reading = CpuCores()
        started_s, used_s = time.perf_counter(), time.process_time()
        if not spin:
            time.sleep(0.3)
        while spin and time.process_time() - used_s < 0.2:
            pass
        used_s, length_s = time.process_time() - used_s, time.perf_counter() - started_s
        assert reading() == pytest.approx(used_s / length_s, abs=0.15)
        return used_s, length_s

    assert cores(spin=False)[0] < 0.1
    assert cores(spin=True)[0] >= 0.2


@linux
def test_other_cpu_cores_are_those_of_other_processes() -> None:
    """Between what the system's own counters say within the interval and around it."""
    spin = [sys.executable, "-c", "while True: pass"]
    ticks_s = 0.05  # the counters move in steps of 10 ms on each core

    def others() -> tuple[float, float]:
        fields = [int(f) for f in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        user, nice, system, _idle, _iowait, irq, softirq, steal = fields
        all_s = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
        return time.perf_counter(), all_s - time.process_time()

    with subprocess.Popen(spin) as other:
        try:
            around = others()
            reading = other_cores()
            within = others()
            while time.perf_counter() - within[0] < 0.6:
                pass
            within_s, within_other_s = (b - a for a, b in zip(within, others(), strict=True))
            cores = reading()
            around_s, around_other_s = (b - a for a, b in zip(around, others(), strict=True))
        finally:
            other.kill()
    assert within_other_s > 0.1  # the other process had its share of a core
    assert cores * around_s >= within_other_s - ticks_s
    assert cores * within_s <= around_other_s + ticks_s


def test_pressure_is_a_fraction_of_the_last_ten_seconds() -> None:
    full = b"full avg10=1.00 avg60=0.00 avg300=0.00 total=0\n"
    some = b"some avg10=3.66 avg60=1.35 avg300=0.43 total=4145986\n"
    assert pressure(some + full) == pytest.approx(0.0366)
    with pytest.raises(ValueError, match='no line "some"'):
        pressure(full)


@linux
def test_busy_time_is_all_but_idle_and_iowait_and_counts_guests_once() -> None:
    """10 + 2 + 30 + 0.5 + 0.25 + 4 s of the first eight fields; the guest's 9 s are in user's."""
    ticks = os.sysconf("SC_CLK_TCK") // 100
    fields = (1000, 200, 3000, 99_999, 777, 50, 25, 400, 900, 0)
    line = "cpu  " + " ".join(str(field * ticks) for field in fields)
    assert busy_s(f"{line}\ncpu0 1 2 3\n".encode()) == pytest.approx(46.75)


@linux
def test_resident_pages_are_the_second_figure_of_statm() -> None:
    assert rss_bytes(b"9000 25 7 1 0 300 0\n") == 25 * resource.getpagesize()


def test_a_line_of_meminfo_is_in_bytes() -> None:
    text = b"MemTotal:       24110000 kB\nMemFree:  9 kB\nMemAvailable:     1024 kB\nHuge: 7\n"
    assert meminfo_bytes(text, b"MemTotal") == 24_110_000 * 1024
    assert meminfo_bytes(text, b"MemAvailable") == 1 << 20
    with pytest.raises(ValueError, match="has no SwapFree"):
        meminfo_bytes(text, b"SwapFree")
    with pytest.raises(ValueError, match="not in kB"):
        meminfo_bytes(b"HugePages_Free: 7\nHugePages_Rsvd: 0 kB\n", b"HugePages_Free")


@linux
def test_memory_without_a_limit_is_what_psutil_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_memory, "tightest_memory_limit", lambda: None)
    memory = machine_memory.MachineMemory(Path("/proc"))
    now = psutil.virtual_memory()
    assert memory.total_bytes() == now.total
    assert memory.available_bytes() == pytest.approx(now.available, abs=256 << 20)
    memory.close()


def test_one_text_serves_a_moment(tmp_path: Path) -> None:
    now, file = [0], tmp_path / "figures"
    file.write_text("7 and more")
    read = OpenFile(file, size=1, fresh_ns=10, clock=lambda: now[0])
    assert read() == b"7"
    file.write_text("8")
    now[0] = 9
    assert read() == b"7"
    now[0] = 10
    assert read() == b"8"
    read.close()


def test_a_file_is_read_anew_each_time_and_closed(tmp_path: Path) -> None:
    file = tmp_path / "figure"
    file.write_text("7")
    figure = FileFigure(file, float)
    assert figure() == 7.0
    file.write_text("8")
    assert figure() == 8.0
    held = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else None
    figure.close()
    figure.close()
    if held is not None:
        assert len(os.listdir("/proc/self/fd")) == held - 1


def test_a_field_is_read_no_more_often_than_it_says() -> None:
    reads: list[int] = []

    def count() -> float:
        reads.append(len(reads))
        return float(len(reads))

    slow = HostField("slow", "bytes", count, every_ns=1000)
    sampler = HostSampler((HostField("fast", "bytes", lambda: 1.0), slow))
    seen = {t: [row.name for row in sampler.sample(t)] for t in (0, 999, 1000, 1999, 2500)}
    both = ["fast", "slow"]
    assert seen == {0: both, 999: ["fast"], 1000: both, 1999: ["fast"], 2500: both}
    assert len(reads) == 3


def test_a_kernel_without_pressure_figures_is_said_with_the_way_to_get_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "statm").write_text("9000 25 7 1 0 300 0\n")
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\nMemAvailable: 4 kB\n")
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure" / "io").write_text("some avg10=50.00 avg60=0.00 avg300=0.00 total=1\n")
    sampler = HostSampler(host_fields(proc=tmp_path))
    missing = {absent.what: absent for absent in sampler.probe()}
    of_cores = {"host_other_cpu_cores", "host_neighbour_cores", "host_run_wait"}
    assert set(missing) == {"psi_cpu_some", "psi_memory_some", *of_cores}
    assert "record on Linux" in missing["host_run_wait"].how
    assert "No such file or directory" in missing["psi_cpu_some"].reason
    assert "psi=1" in missing["psi_cpu_some"].how
    rows = {row.name: row for row in sampler.sample(0)}
    sampler.close()
    assert (rows["psi_io_some"].value, rows["psi_io_some"].unit) == (0.5, "fraction")
    assert "psi_cpu_some" not in rows
    assert not {"host_run_wait_threads", "host_steal_cores"} & set(rows)


def test_a_field_with_nothing_new_is_left_out_of_that_sample() -> None:
    answers = iter([1.0, None, 2.0])
    sampler = HostSampler((HostField("x", "cores", lambda: next(answers)),))
    seen = [[row.value for row in sampler.sample(t)] for t in range(3)]
    assert seen == [[1.0], [], [2.0]]


def test_only_fields_that_answered_the_probe_are_sampled() -> None:
    def broken() -> float:
        raise PermissionError("not yours")

    fields = (HostField("a", "bytes", lambda: 1), HostField("b", "bytes", broken, "ask"))
    sampler = HostSampler(fields)
    assert [(m.what, m.reason, m.how) for m in sampler.probe()] == [("b", "not yours", "ask")]
    assert [(row.name, row.value) for row in sampler.sample(0)] == [("a", 1.0)]
