"""A report goes through ncu, which a script plays: no test machine has one, nor its driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.errors import InputError
from stallscope.profiler.ncu.report_file import SIGNATURE, read_ncu_report

PAGE = (
    '"ID","Kernel Name","Device","Metric Name","Metric Unit","Metric Value"\n'
    '"0","gemv2T_kernel_val","0","Duration","us","4.00"\n'
    '"0","gemv2T_kernel_val","0","DRAM Throughput","%","71.5"\n'
)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    file = tmp_path / "run.ncu-rep"
    file.write_bytes(SIGNATURE + b"\0" * 16)
    return file


def ncu(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "bin" / "ncu"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_ncu_prints_the_page(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = f'[ "$*" = "--import {report} --csv --page details" ] || exit 9'
    ncu(tmp_path, monkeypatch, f"{asked}\ncat <<'END'\n{PAGE}END")
    capture = read_ncu_report(report)
    assert [(k.kernel_class, k.busy_ns) for k in capture.kernels] == [("gemv", 4000)]
    assert [(s.kind, s.path) for s in capture.sources] == [("ncu", str(report))]


def test_without_ncu_one_line_says_how(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(report.parent))
    with pytest.raises(InputError) as caught:
        read_ncu_report(report)
    assert str(caught.value) == (
        f"{report} is a report of Nsight Compute, and ncu, which reads it, is not on PATH; where "
        "it is, run: ncu --import run.ncu-rep --csv --page details > kernels.csv, and give that"
    )


def test_a_refusal_repeats_what_ncu_says(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "==ERROR== Failed to open import file"
    ncu(tmp_path, monkeypatch, f"echo 'Loading…'; echo '{said}' >&2; exit 1")
    with pytest.raises(InputError, match=r"refused it \(Failed to open import file\); a report"):
        read_ncu_report(report)


def test_an_empty_answer_names_the_report(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ncu(tmp_path, monkeypatch, "echo '==WARNING== No kernels were profiled.'")
    with pytest.raises(InputError, match="holds no table of ncu's") as caught:
        read_ncu_report(report)
    assert str(caught.value).startswith(str(report))
