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
    assert "49 % of the kernel time: profiles of less than 50 %" in rule(cover=0.49)[1]


def test_it_says_so_once_and_counts_launches_in_words() -> None:
    """SM and DRAM are unseen for one and the same reason."""
    assert rule()[1].count("ncu profiled") == 1
    assert rule(launches=1)[1].startswith("ncu profiled one launch, an unknown share")
    assert rule(launches=0)[1].startswith("ncu profiled 0 launches,")


def test_two_reasons_are_both_said() -> None:
    """Nothing profiled: no SM and no DRAM throughput, each for its own reason."""
    kernels = (KernelSummary("cuda:0", 0, "decode", "gemv", "k", 3, 3_000_000, None),)
    (found,) = (r for r in diagnose(Capture(kernels=kernels)).rules if r.id == "bandwidth")
    assert found.reason.count("; ") == 1
    assert found.reason.startswith("no SM throughput was sampled")
    assert "; no DRAM throughput was sampled" in found.reason
