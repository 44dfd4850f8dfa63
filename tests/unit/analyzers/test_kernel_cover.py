"""Counters of profiled kernels speak for a run from half of its kernel time on."""

from __future__ import annotations

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.capture import Capture, DeviceSample, KernelSummary


def rule(**meta: float) -> tuple[str, str]:
    """The bandwidth rule over SM 0.25 and DRAM 0.84 as ncu measured them."""
    capture = Capture(
        kernels=(KernelSummary("cuda:0", 0, "decode", "gemv", "k", 3, 3_000_000, None),),
        device_samples=(
            DeviceSample(0, "cuda:0", "ncu_sm_throughput", 0.25, "fraction"),
            DeviceSample(0, "cuda:0", "ncu_dram_throughput", 0.84, "fraction"),
        ),
        meta={"ended": {}, "ncu": {"launches": 3, **meta}},
    )
    (found,) = (r for r in diagnose(capture).rules if r.id == "bandwidth")
    return found.status, found.reason


@pytest.mark.parametrize(
    ("meta", "status"),
    [({"cover": 0.5}, "met"), ({"cover": 0.49}, "not observable"), ({}, "not observable")],
)
def test_cover(meta: dict[str, float], status: str) -> None:
    assert rule(**meta)[0] == status


def test_it_says_why() -> None:
    assert "3 launches, an unknown share of the kernel time" in rule()[1]
    assert "49 % of the kernel time: under 50 %" in rule(cover=0.49)[1]
