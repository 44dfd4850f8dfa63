"""Kernel time by class and name, over devices, by hand."""

from __future__ import annotations

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.kernel_table import MOST_NAMES, kernel_table
from stallscope.profiler.capture import Capture, KernelSummary
from stallscope.reports.terminal import render

MS = 1_000_000


def row(
    kind: str, name: str, count: int, ms: float, exposed_ms: float | None = None, device: str = "a"
) -> KernelSummary:
    exposed = None if exposed_ms is None else round(exposed_ms * MS)
    return KernelSummary(device, 0, "decode", kind, name, count, round(ms * MS), exposed)


TRACED = Capture(
    kernels=(
        row("gemv", "k1", 3, 30),
        row("gemv", "k1", 1, 10, device="b"),
        row("gemv", "k2", 5, 20),
        row("copy", "copy, host to device", 2, 40, exposed_ms=25),
    )
)


def test_classes_then_names_by_falling_time() -> None:
    found = [
        (r.kernel_class, r.name, r.launches, round(r.busy_s * 1e3), r.share, r.exposed_s)
        for r in kernel_table(TRACED)
    ]
    assert found == [
        ("gemv", None, 9, 60, 0.6, None),
        ("copy", None, 2, 40, 0.4, pytest.approx(0.025)),
        ("gemv", "k1", 4, 40, 0.4, None),
        ("copy", "copy, host to device", 2, 40, 0.4, pytest.approx(0.025)),
        ("gemv", "k2", 5, 20, 0.2, None),
    ]


def test_only_the_longest_names_are_listed() -> None:
    many = Capture(kernels=tuple(row("gemm", f"k{i}", 1, i + 1) for i in range(MOST_NAMES + 5)))
    names = [r.name for r in kernel_table(many) if r.name is not None]
    assert names == [f"k{i}" for i in range(MOST_NAMES + 4, 4, -1)]


def test_no_kernel_no_table() -> None:
    assert kernel_table(Capture()) == ()
    assert kernel_table(Capture(kernels=(row("gemv", "k", 1, 0),))) == ()
    assert "Kernels of the trace" not in render(diagnose(Capture()))


def test_the_report_lists_them() -> None:
    text = render(diagnose(TRACED))
    lines = [line.split() for line in text[text.index("Kernels of the trace") :].splitlines()]
    assert ["decode", "gemv", "9", "60.0", "ms", "60.0", "%"] in lines
    assert ["decode", "4", "40.0", "ms", "40.0", "%", "10.0", "ms", "k1"] in lines
