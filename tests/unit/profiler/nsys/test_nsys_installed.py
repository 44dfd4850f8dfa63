"""Finding nsys, and what is said where there is none or where it cannot read a file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from stallscope.errors import InputError, MissingTool
from stallscope.profiler.doctor.surroundings import Surroundings
from stallscope.profiler.nsys.export import export_sqlite, exported, import_stream
from stallscope.profiler.nsys.installed import Nsys, find_nsys
from stallscope.profiler.wrap.left import report_left


@pytest.fixture
def bare(tmp_path: Path) -> Surroundings:
    """A machine without nsys."""
    return Surroundings(tmp_path / "root", {"PATH": str(tmp_path / "bin")})


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


VERSION = "echo NVIDIA Nsight Systems version 2024.6.2.225-246235244400v0"


def test_missing_nsys_says_how_to_get_it(bare: Surroundings) -> None:
    with pytest.raises(MissingTool) as error:
        find_nsys(bare)
    assert error.value.exit_code == 3
    assert str(error.value).startswith("nsys cannot be used: not on PATH; install Nsight Systems")
    assert "apt-get install nsight-systems" in str(error.value)


def test_path_comes_first(bare: Surroundings, tmp_path: Path) -> None:
    path = program(tmp_path / "bin" / "nsys", VERSION)
    program(
        tmp_path / "root/opt/nvidia/nsight-systems/2025.1.1/bin/nsys",
        "echo NVIDIA Nsight Systems version 2025.1.1",
    )
    assert find_nsys(bare) == Nsys(path, "2024.6.2.225")


def test_an_installers_folder_will_do(bare: Surroundings, tmp_path: Path) -> None:
    for version in ("2024.6.2", "2025.1.1", "2023.4.4"):
        path = tmp_path / f"root/opt/nvidia/nsight-systems/{version}/bin/nsys"
        program(path, f"echo NVIDIA Nsight Systems version {version}.7")
    newest = tmp_path / "root/opt/nvidia/nsight-systems/2025.1.1/bin/nsys"
    assert find_nsys(bare) == Nsys(newest, "2025.1.1.7")


def test_an_nsys_that_does_not_start_is_none(bare: Surroundings, tmp_path: Path) -> None:
    program(tmp_path / "bin" / "nsys", "echo no libdw.so.1 >&2; exit 127")
    with pytest.raises(MissingTool, match="nsys ended with code 127: no libdw.so.1; see what"):
        find_nsys(bare)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("a10serve__sglang_llama_profile.nsys-rep", "2025.6.1.190"),
        ("rtx4060__demo.nsys-rep", "2024.6.2.225"),
    ],
)
def test_a_newer_report_is_refused_with_both_versions(
    corpus: Path, nsys: str, tmp_path: Path, name: str, version: str
) -> None:
    place = Surroundings()
    installed = find_nsys(place)
    report = corpus / "nsys" / name
    if [int(n) for n in installed.version.split(".")] >= [int(n) for n in version.split(".")]:
        assert export_sqlite(place, installed, report, tmp_path).stat().st_size > 0
        return
    with pytest.raises(InputError) as error, exported(report):
        pass
    said = str(error.value)
    assert said.startswith(f"{report}: version {version} of nsys wrote it, and the installed ")
    assert installed.version in said
    assert f"nsys export --type sqlite {name}" in said
    assert "\n" not in said


def test_a_damaged_report_is_no_newer_one(nsys: str, corpus: Path, tmp_path: Path) -> None:
    place = Surroundings()
    installed = find_nsys(place)
    report = tmp_path / "cut.nsys-rep"
    head = b"NVIDIA Tegra Profiler Report " + installed.version.replace(".", "@").encode()
    report.write_bytes(head + b"-0v0.\n" + bytes(100))
    with pytest.raises(InputError, match="may be cut: copy it again") as error:
        export_sqlite(place, installed, report, tmp_path)
    assert "\n" not in str(error.value)


def test_without_nsys_a_report_is_told_what_it_needs(bare: Surroundings, corpus: Path) -> None:
    report = corpus / "nsys" / "rtx4060__demo.nsys-rep"
    with pytest.raises(MissingTool) as error, exported(report, bare):
        pass
    assert error.value.exit_code == 3
    assert "a report of nsys 2024.6.2.225, which only nsys can open" in str(error.value)


def test_a_raw_stream_without_importer_is_explained(bare: Surroundings, tmp_path: Path) -> None:
    stream = tmp_path / "trace.qdstrm"
    stream.touch()
    nsys = Nsys(tmp_path / "a/target-linux-x64/nsys", "2024.6.2.225")
    with pytest.raises(MissingTool, match=r"left the raw trace\.qdstrm, and no QdstrmImporter is"):
        report_left(bare, nsys, tmp_path)


def test_a_raw_stream_is_converted_by_the_real_importer(nsys: str, tmp_path: Path) -> None:
    """Also where nsys finds its importer itself: the older report then stands."""
    place = Surroundings()
    installed = find_nsys(place)
    command = [nsys, "profile", "-t", "nvtx", "--sample=none", "--cpuctxsw=none", "-o", "trace"]
    for _ in range(4):  # it fails where another one is started at the same moment
        done = subprocess.run([*command, "true"], cwd=tmp_path, capture_output=True, text=True)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    stream = tmp_path / "trace.qdstrm"
    report = import_stream(place, installed, stream) if stream.exists() else None
    assert report_left(place, installed, tmp_path) == tmp_path / "trace.nsys-rep"
    assert report in (None, tmp_path / "trace.nsys-rep")
