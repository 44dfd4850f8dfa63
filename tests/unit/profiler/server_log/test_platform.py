"""The system below the engine: named, and without a figure that nobody measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_files import periodic, read

from stallscope.profiler.capture import Capture

AT = "05-01 17:03:56 [interface.py:686]"
WARNING = f"WARNING {AT} Using 'pin_memory=False' as WSL is detected. This may slow down.\n"


def kernel(version: str) -> str:
    return f"INFO {AT} platform: Linux-{version}-microsoft-standard-WSL2-x86_64\n"


def of(folder: Path, *lines: str) -> Capture:
    return read(folder, "".join((*lines, periodic("05-01 17:04:10", 1, 0, 1.0))))


@pytest.mark.parametrize(
    ("lines", "how"),
    [
        ((WARNING,), "a kernel before 4.19.121 refuses (wsl --update); on later ones vLLM pins"),
        ((WARNING, kernel("4.19.120.1")), "kernel 4.19.120 refuses to pin"),
        ((WARNING, kernel("4.19.121")), "kernel 4.19.121 allows it"),
        ((kernel("5.15.167.4"),), "kernel 5.15.167 allows it, and vLLM pins only if VLLM_WSL2_EN"),
    ],
)
def test_wsl_and_its_two_gates(tmp_path: Path, lines: tuple[str, ...], how: str) -> None:
    capture = of(tmp_path, *lines)
    (said,) = [e.data["sentence"] for e in capture.events if e.kind == "check"]
    assert said.startswith("The engine ran under WSL")
    assert ("without pinned memory" in said) is (WARNING in lines)
    (unseen,) = [e.data["how"] for e in capture.events if e.kind == "not_observable"]
    assert how in unseen


def test_elsewhere_nothing_is_said(tmp_path: Path) -> None:
    line = f"INFO {AT} platform: Linux-6.8.0-45-generic-x86_64, pin_memory=False\n"
    assert [e for e in of(tmp_path, line).events if "sentence" in e.data] == []
