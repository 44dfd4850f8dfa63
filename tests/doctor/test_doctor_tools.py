"""nsys and ncu: found, and believed, only where they answer."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from doctor_place import Place, is_running

from stallscope.profiler.doctor.counters import may_read_counters
from stallscope.profiler.doctor.nsys import judge_ranges, nsys_checks

NSYS_2024 = "NVIDIA Nsight Systems version 2024.5.1.113-245134619542v0"
NCU = """cat <<'END'
NVIDIA (R) Nsight Compute Command Line Profiler
Copyright (c) 2018-2024 NVIDIA Corporation
Version 2024.3.2.0 (build 34861637) (public-release)
END"""
PARAMS = "/proc/driver/nvidia/params"
DRIVER = {
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15\n"
}
HELP = """case "$*" in
--version) echo "NVIDIA Nsight Systems version 2022.4.2.1-df9881f" ;;
"profile --gpu-metrics-device=help") cat <<'END'
Possible --gpu-metrics-device values are:
\t1: Turing TU104 | GeForce RTX 2070 SUPER PCI[0000:65:00.0]
\tall: Select all supported GPUs
\tnone: Disable GPU Metrics [Default]
Some GPUs are not supported:
\t0: Volta GV100 | Quadro GV100 PCI[0000:17:00.0]
END
;;
*) echo "unrecognised option '$2'"; exit 1 ;;
esac"""


def test_nothing_on_path_is_no_tick(place: Place) -> None:
    checks = place.checks()
    names = ["nsys", "nsys importer", "nsys with nvtx", "nsys GPU metrics", "ncu", "GPU counters"]
    assert {name: checks[name]["status"] for name in names} == dict.fromkeys(names, "missing")
    assert checks["nsys"]["reason"] == "not on PATH"
    assert "https://developer.nvidia.com/nsight-systems" in checks["nsys"]["fix"]


def test_versions_are_what_the_tools_print(place: Place) -> None:
    nsys = place.program("nsys", f"echo '{NSYS_2024}'")
    ncu = place.program("ncu", NCU.replace("cat", "/bin/cat"))
    checks = place.checks()
    assert checks["nsys"]["reason"] == f"2024.5.1.113 at {nsys}"
    assert checks["ncu"]["reason"] == f"2024.3.2.0 at {ncu}"
    assert checks["nsys"]["status"] == checks["ncu"]["status"] == "ok"
    # A script tells nothing of where the real nsys would look for its importer.
    assert checks["nsys importer"]["status"] == "unknown"
    assert checks["nsys with nvtx"]["status"] == "unknown"


@pytest.mark.parametrize(
    ("script", "status", "reason"),
    [
        (
            "echo 'nsys: error while loading shared libraries: libdw.so.1' >&2; exit 127",
            "unknown",
            "ended with code 127: nsys: error while loading shared libraries: libdw.so.1",
        ),
        ("echo Hello", "unknown", "printed no version: Hello"),
        ("kill -SEGV $$", "unknown", "ended with signal 11"),
        ("exit 1", "unknown", "ended with code 1"),
    ],
)
def test_a_broken_tool_is_no_tick(place: Place, script: str, status: str, reason: str) -> None:
    nsys, ncu = place.program("nsys", script), place.program("ncu", script)
    checks = place.checks()
    assert (checks["nsys"]["status"], checks["ncu"]["status"]) == (status, status)
    assert checks["nsys"]["reason"] == f"{nsys} {reason}"
    assert checks["ncu"]["reason"] == f"{ncu} {reason}"
    assert checks["nsys importer"]["status"] == checks["nsys with nvtx"]["status"] == status


@pytest.mark.parametrize(
    ("program", "prints", "is_not"),
    [
        ("ncu", "ncurses 6.4 version 6.4.20221231", "Nsight Compute"),
        ("ncu", NSYS_2024, "Nsight Compute"),
        ("nsys", "nsys version 1.2.3", "Nsight Systems"),
    ],
)
def test_another_program_of_the_name_is_no_tick(
    place: Place, program: str, prints: str, is_not: str
) -> None:
    path = place.program(program, f"echo '{prints}'")
    check = place.checks()[program]
    assert (check["status"], check["reason"]) == (
        "unknown",
        f"{path} is not {is_not}: it printed {prints}",
    )


def test_a_program_that_fails_is_not_to_be_installed(place: Place) -> None:
    path = place.program("nsys", "exit 1")
    fix = place.checks()["nsys"]["fix"]
    assert fix.startswith(f"see what it lacks: {path} --version; or ")


def test_a_file_that_is_no_program_is_no_tick(place: Place) -> None:
    path = place.bin / "nsys"
    path.write_bytes(b"\x7fELF nothing")
    path.chmod(0o755)
    check = place.checks()["nsys"]
    assert (check["status"], check["reason"]) == (
        "unknown",
        f"{path} cannot be started: Exec format error",
    )


def test_a_tool_that_hangs_is_ended_with_what_it_started(place: Place) -> None:
    place.program("nsys", f"/bin/sleep 600 &\necho $! > {place.folder}/child\nwait")
    start_s = time.monotonic()
    checks = place.checks("--timeout", "2")
    assert time.monotonic() - start_s < 60
    assert checks["nsys"]["status"] == checks["nsys importer"]["status"] == "unknown"
    assert checks["nsys"]["reason"].endswith("gave no answer within 2 s")
    assert not is_running(int((place.folder / "child").read_text()))


def test_tools_beside_path_are_named_with_the_path_to_add(place: Place) -> None:
    folders = [place.root / f"opt/nvidia/nsight-systems/{v}/bin" for v in ("2023.4.4", "2024.10.1")]
    place.files({f"{folder}/nsys".removeprefix(str(place.root)): "" for folder in folders})
    check = place.checks()["nsys"]
    assert check["status"] == "missing"
    assert check["fix"] == f"export PATH={folders[1]}:$PATH"  # 10 is newer than 4 and than 2023


def test_importer_beside_nsys(place: Place, compiled: Callable[..., object]) -> None:
    version = place.folder / "nsight-systems/2024.5.1"
    compiled(version / "target-linux-x64/nsys", NSYS_2024)
    importer = version / "host-linux-x64/QdstrmImporter"
    compiled(importer, "QdstrmImporter 2024")
    (place.bin / "nsys").symlink_to(version / "target-linux-x64/nsys")
    check = place.checks()["nsys importer"]
    assert (check["status"], check["reason"]) == ("ok", f"{importer}, where nsys looks for it")
    importer.write_text("#!/bin/sh\necho 'libssh.so: cannot open' >&2\nexit 127\n")
    check = place.checks()["nsys importer"]
    assert check["status"] == "missing"
    assert check["reason"] == f"{importer} ended with code 127: libssh.so: cannot open"


def test_importer_that_nsys_does_not_find(place: Place, compiled: Callable[..., object]) -> None:
    usr = place.folder / "usr"  # the tree of Debian's package
    nsys = usr / "lib/x86_64-linux-gnu/nsight-systems/target-linux-x64/nsys"
    compiled(nsys, NSYS_2024)
    (place.bin / "nsys").symlink_to(nsys)
    check = place.checks()["nsys importer"]
    assert check["status"] == "missing"
    assert "a target-only install" in check["reason"]
    importer = usr / "lib/nsight-systems/host-linux-x64/QdstrmImporter"
    compiled(importer, "QdstrmImporter")
    check = place.checks()["nsys importer"]
    assert check["status"] == "limited"
    assert check["fix"] == f"after each trace: {importer} -i X.qdstrm -o X.nsys-rep"


@pytest.mark.parametrize(
    ("nsys", "nvtx", "status"),
    [
        ("2022.4.2.1", "0.2.8", "limited"),  # measured: arrives empty
        ("2022.4.2.1", "0.2.10", "ok"),  # measured: 600,006 of 600,006 events
        ("2022.4.2.1", "0.2.11", "ok"),
        ("2022.4.2.1", "0.2.12", "limited"),  # measured: all lost, silently
        ("2022.4.2.1", "0.2.17", "limited"),
        ("2022.4.2.1", "0.3.0", "limited"),
        ("2023.2.3.1004", "0.2.13", "limited"),  # reported
        ("2023.3.1.92", "0.2.13", "unknown"),
        ("2025.6.1.190", "0.2.17", "unknown"),
        ("2025.6.1.190", "0.2.11", "unknown"),
        ("2021.3.1.54", "0.2.11", "unknown"),
    ],
)
def test_only_tried_versions_are_vouched_for(nsys: str, nvtx: str, status: str) -> None:
    check = judge_ranges(nsys, nvtx)
    assert check.status == status
    assert check.reason.startswith(f"nsys {nsys} with nvtx {nvtx}: ")


def test_nsys_that_loses_ranges_of_the_installed_nvtx(place: Place) -> None:
    place.program("nsys", "echo NVIDIA Nsight Systems version 2022.4.2.1-df9881f")
    place.install(
        {
            "nvtx/__init__.py": "from contextlib import nullcontext\n"
            "def annotate(message, domain):\n    return nullcontext()\n",
            "nvtx-0.2.12.dist-info/METADATA": "Name: nvtx\nVersion: 0.2.12\n",
        }
    )
    check = place.checks()["nsys with nvtx"]
    assert check["reason"] == "nsys 2022.4.2.1 with nvtx 0.2.12: every range is lost, silently"
    assert (check["status"], check["fix"]) == ("limited", "pip install 'nvtx<0.2.12'")


ADMIN = "CapEff:\t0000000000200000\n"  # bit 21
ALL_BUT_ADMIN = "CapEff:\t000001ffffdfffff\n"


@pytest.mark.parametrize(
    ("params", "status_file", "status", "reason"),
    [
        (None, ADMIN, "missing", "no NVIDIA driver to ask"),
        ("RmProfilingAdminOnly: 0\n", None, "ok", "RmProfilingAdminOnly is 0: any user"),
        ("RmProfilingAdminOnly: 1\n", ADMIN, "ok", "and this process has CAP_SYS_ADMIN"),
        ("RmProfilingAdminOnly: 1\n", ALL_BUT_ADMIN, "limited", "this process lacks CAP_SYS_ADMIN"),
        ("RmProfilingAdminOnly: 1\n", None, "unknown", "self/status: No such file"),
        ("EnableMSI: 1\n", ADMIN, "unknown", "does not say RmProfilingAdminOnly"),
    ],
)
def test_permission_for_counters(
    place: Place, params: str | None, status_file: str | None, status: str, reason: str
) -> None:
    files = {PARAMS: params, "/proc/self/status": status_file}
    place.files({name: text for name, text in files.items() if text is not None} | DRIVER)
    place.program("nsys", HELP.replace("cat", "/bin/cat"))
    counters = may_read_counters(place.surroundings)
    assert counters.status == status
    assert reason in counters.reason
    *_, metrics = nsys_checks(place.surroundings)
    assert metrics.status == status  # what ncu may not read, nsys may not either
    if status == "ok":  # only what nsys itself offers, not what it calls unsupported
        offered = "Turing TU104 | GeForce RTX 2070 SUPER PCI[0000:65:00.0]"
        assert metrics.reason == f"nsys offers them for {offered}"


def test_nsys_that_offers_no_device(place: Place) -> None:
    place.files({PARAMS: "RmProfilingAdminOnly: 0\n"} | DRIVER)
    none = "echo 'NVIDIA Nsight Systems version 2022.4.2.1'; echo NVIDIA GPUs not found"
    place.program("nsys", none)
    check = place.checks()["nsys GPU metrics"]
    assert check["status"] == "unknown"
    assert check["reason"].endswith("NVIDIA GPUs not found")
