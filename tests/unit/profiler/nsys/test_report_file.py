"""The first line of nsys' own report files."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.profiler.nsys.report_file import is_report, report_version


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("a10serve__sglang_llama_profile.nsys-rep", "2025.6.1.190"),
        ("rtx4060__demo.nsys-rep", "2024.6.2.225"),
    ],
)
def test_version_of_real_reports(corpus: Path, name: str, version: str) -> None:
    path = corpus / "nsys" / name
    assert (is_report(path), report_version(path)) == (True, version)


def test_other_files_have_none(tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes(b"NVIDIA Tegra Profiler Report ")
    (tmp_path / "other").write_bytes(b"NVIDIA Tegra Profiler 2025@6")
    (tmp_path / "empty").touch()
    reports = {name: is_report(tmp_path / name) for name in ("cut", "other", "empty", "none")}
    assert reports == {"cut": True, "other": False, "empty": False, "none": False}
    assert [report_version(tmp_path / name) for name in reports] == [None] * 4
