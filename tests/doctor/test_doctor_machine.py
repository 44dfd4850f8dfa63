"""The machine, as the files below a root describe it."""

from __future__ import annotations

import os
import re
import time

import pytest
from doctor_place import Place

from stallscope.profiler.doctor.machine import (
    clock_check,
    governor_check,
    huge_pages_check,
    pressure_check,
)
from stallscope.profiler.doctor.run_queue import run_queue_check
from stallscope.profiler.doctor.shares import container_check, cpu_check, memory_check

CORES = os.cpu_count() or 1
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
MEMINFO = {"/proc/meminfo": "MemTotal:       16777216 kB\nMemFree:  1 kB\n"}  # 16 GiB
V2 = {
    "/proc/self/cgroup": "0::/box\n",
    "/sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
}
V1 = {
    "/proc/self/cgroup": "4:memory:/box\n2:cpu,cpuacct:/box\n",
    "/sys/fs/cgroup/memory/box/tasks": "",
    "/sys/fs/cgroup/cpu/box/tasks": "",
}
PRESSURE = {
    f"/proc/pressure/{resource}": f"some avg10={share} avg60=0.00 avg300=0.00 total=1\n"
    for resource, share in {"cpu": "12.50", "memory": "0.00", "io": "1.00"}.items()
}


def test_an_empty_root_earns_no_tick(place: Place) -> None:
    checks = place.checks()
    unseen = ["huge pages", "CPU quota", "memory limit", "CPU governor", "container"]
    assert {name: checks[name]["status"] for name in unseen} == dict.fromkeys(unseen, "unknown")
    assert checks["pressure (PSI)"]["status"] == "missing"
    assert checks["clock"]["reason"].endswith("clock source not visible")


@pytest.mark.parametrize(
    ("text", "environ", "status", "reason"),
    [
        ("[always] madvise never\n", {}, "ok", "mode always; run asks"),
        ("always [madvise] never\n", {}, "ok", "mode madvise; run asks"),
        ("always [madvise] never\n", {"THP_MEM_ALLOC_ENABLE": "0"}, "limited", "ENABLE=0 keeps"),
        ("always madvise [never]\n", {}, "missing", "the kernel's mode is never"),
        ("always [sometimes] never\n", {}, "unknown", "[sometimes]"),
        ("", {}, "unknown", "says ''"),
    ],
)
def test_huge_pages(
    place: Place, text: str, environ: dict[str, str], status: str, reason: str
) -> None:
    place.files({THP: text})
    place.environ |= environ
    check = huge_pages_check(place.surroundings)
    assert check.status == status
    assert reason in check.reason


def test_huge_pages_of_a_kernel_without_them(place: Place) -> None:
    check = place.checks()["huge pages"]
    reason = f"cannot tell: {place.root}{THP}: No such file or directory"
    assert (check["status"], check["reason"]) == ("unknown", reason)


def test_pressure(place: Place) -> None:
    place.files(PRESSURE)
    check = pressure_check(place.surroundings)
    waited = "of the last 10 s some task waited for cpu 12.5 %, memory 0 %, io 1 %"
    assert (check.status, check.reason) == ("ok", waited)
    place.files({"/proc/pressure/io": "full avg10=0.00\n"})
    assert pressure_check(place.surroundings).status == "unknown"


@pytest.mark.parametrize(
    ("text", "status"),
    [("812345 9876 12\n", "ok"), ("0 0 0\n", "unknown"), ("no figures\n", "unknown")],
)
def test_waits_for_cores(place: Place, text: str, status: str) -> None:
    """A kernel that counts nothing answers three zeros."""
    assert run_queue_check(place.surroundings).status == "missing"
    place.files({"/proc/self/schedstat": text})
    assert run_queue_check(place.surroundings).status == status


@pytest.mark.parametrize(
    ("files", "quota", "limit"),
    [
        # A quota of 50 of 100 ms is half a core; 4 GiB of 16.
        ({"cpu.max": "50000 100000\n", "memory.max": f"{4 << 30}\n"}, 0.5, "4.0 GiB of the"),
        ({"cpu.max": "max 100000\n", "memory.max": "max\n"}, None, None),
        ({"cpu.max": f"{CORES}00000 100000\n", "memory.max": f"{16 << 30}\n"}, CORES, None),
    ],
)
def test_limits_of_version_2(
    place: Place, files: dict[str, str], quota: float | None, limit: str | None
) -> None:
    place.files(V2 | MEMINFO | {f"/sys/fs/cgroup/box/{name}": t for name, t in files.items()})
    _holds_to(place, quota, limit)


@pytest.mark.parametrize(
    ("quota_us", "limit_bytes", "quota", "limit"),
    [
        ("50000", 4 << 30, 0.5, "4.0 GiB of the machine's 16.0 GiB"),
        ("-1", 0x7FFFFFFFFFFFF000, None, None),  # how version 1 writes "none"
    ],
)
def test_limits_of_version_1(
    place: Place, quota_us: str, limit_bytes: int, quota: float | None, limit: str | None
) -> None:
    cpu, memory = "/sys/fs/cgroup/cpu/box", "/sys/fs/cgroup/memory/box"
    files = {f"{cpu}/cpu.cfs_quota_us": quota_us, f"{cpu}/cpu.cfs_period_us": "100000\n"}
    place.files(V1 | MEMINFO | files | {f"{memory}/memory.limit_in_bytes": f"{limit_bytes}\n"})
    _holds_to(place, quota, limit)


def test_limits_of_a_group_without_controllers_are_unknown(place: Place) -> None:
    place.files(MEMINFO | {"/proc/self/cgroup": "0::/\n"})  # /sys is not mounted
    check = cpu_check(place.surroundings)
    assert check.status == memory_check(place.surroundings).status == "unknown"
    assert check.reason.endswith("/sys/fs/cgroup shows no cpu controller")


def test_the_command_sees_what_the_files_say(place: Place) -> None:
    place.files(V2 | MEMINFO | PRESSURE | {THP: "always madvise [never]\n"})
    place.files({"/sys/fs/cgroup/box/cpu.max": "50000 100000\n"})
    checks = place.checks()
    assert checks["huge pages"]["status"] == "missing"
    assert checks["pressure (PSI)"]["status"] == checks["memory limit"]["status"] == "ok"
    assert checks["CPU quota"]["status"] == "limited"


def _holds_to(place: Place, quota: float | None, limit: str | None) -> None:
    cpu, memory = cpu_check(place.surroundings), memory_check(place.surroundings)
    cores = len(os.sched_getaffinity(0))
    said = "no quota" if quota is None else f"{quota:g} cores"
    assert cpu.reason == f"{said}, may run on {cores} of {CORES}"
    narrow = cores < CORES or (quota is not None and quota < CORES)
    assert cpu.status == ("limited" if narrow else "ok")
    assert memory.status == ("ok" if limit is None else "limited")
    assert memory.reason.startswith(limit or "none below the machine's 16.0 GiB")


@pytest.mark.parametrize(
    ("governors", "status"),
    [
        (["performance", "performance"], "ok"),
        (["performance", "powersave"], "limited"),
        (["schedutil"], "limited"),
        ([], "unknown"),
    ],
)
def test_governor(place: Place, governors: list[str], status: str) -> None:
    folder = "/sys/devices/system/cpu"
    place.files(
        {f"{folder}/cpu{i}/cpufreq/scaling_governor": g + "\n" for i, g in enumerate(governors)}
    )
    check = governor_check(place.surroundings)
    assert check.status == status
    assert all(governor in check.reason for governor in governors)


@pytest.mark.parametrize(
    ("files", "environ", "status", "sign"),
    [
        ({"/proc/1/cgroup": "0::/init.scope\n"}, {}, "ok", "no sign of one"),
        ({"/proc/1/cgroup": "0::/\n", "/.dockerenv": ""}, {}, "limited", "/.dockerenv"),
        ({"/run/.containerenv": ""}, {}, "limited", "/run/.containerenv"),
        ({"/proc/1/cgroup": "1:cpu:/kubepods/pod1\n"}, {}, "limited", "kubepods in /proc/1"),
        ({"/proc/1/cgroup": "0::/\n"}, {"container": "podman"}, "limited", "$container"),
    ],
)
def test_container(
    place: Place, files: dict[str, str], environ: dict[str, str], status: str, sign: str
) -> None:
    place.files(files)
    place.environ |= environ
    check = container_check(place.surroundings)
    assert check.status == status
    assert sign in check.reason


def test_the_clock_is_measured(place: Place) -> None:
    clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    place.files({clock: "tsc\n"})
    reason = clock_check(place.surroundings).reason
    found = re.fullmatch(r"a reading takes (\d+) ns, steps of (\d+) ns, clock source tsc", reason)
    assert found
    # Readings in a row differ by what one takes; this process reads the same clock.
    start_ns = time.perf_counter_ns()
    for _ in range(1_000):
        time.perf_counter_ns()
    mine_ns = (time.perf_counter_ns() - start_ns) / 1_000
    assert mine_ns / 20 < int(found[1]) < mine_ns * 20
    assert 1 <= int(found[2]) < mine_ns * 20
