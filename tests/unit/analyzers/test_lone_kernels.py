"""Kernels without a timeline: what a profile of them tells, and when they are too short to tell."""

from __future__ import annotations

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.step.indicators import limit_without_budget
from stallscope.analyzers.step.limit import Decision
from stallscope.analyzers.step.lone_kernels import mean_length_ns
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, DeviceSample, KernelSummary


def kernel(kind: str, launches: int, each_ns: int) -> KernelSummary:
    return KernelSummary("cuda:0", 0, "other", kind, kind, launches, launches * each_ns, None)


def capture(*kernels: KernelSummary, **samples: float) -> Capture:
    rows = tuple(DeviceSample(0, "cuda:0", n, v, "fraction") for n, v in samples.items())
    return Capture(device_samples=rows, kernels=kernels)


def limit(*kernels: KernelSummary, **samples: float) -> Decision:
    return limit_without_budget(capture(*kernels, **samples), Thresholds(), "unknown")


def profile(each_ns: int, sm: float, dram: float, **more: float) -> Decision:
    figures = {"ncu_sm_throughput": sm, "ncu_dram_throughput": dram}
    return limit(kernel("gemv", 1, each_ns), **figures, **more)


def test_mean_length_is_over_launches_and_without_copies() -> None:
    # 3 × 2 µs and 1 × 10 µs are 16 µs in 4 launches.
    rows = (kernel("gemv", 3, 2000), kernel("norm", 1, 10_000), kernel("copy", 1, 99_000))
    assert mean_length_ns(capture(*rows)) == 4000
    assert mean_length_ns(capture(kernel("copy", 1, 5))) is None


@pytest.mark.parametrize(
    ("each_ns", "sm", "dram", "expected"),
    [
        (6_750, 0.0915, 0.1966, "host"),  # a real gemv of 0.7 waves: short, and uses neither
        (9_999, 0.299, 0.299, "host"),
        (10_000, 0.299, 0.299, "undetermined"),
        (6_750, 0.30, 0.10, "undetermined"),
        (7_580, 0.0266, 0.4942, "undetermined"),  # a real copy: half of DRAM's, for 7.6 µs
        (200_000, 0.299, 0.60, "bandwidth"),
        (200_000, 0.299, 0.599, "undetermined"),
        (200_000, 0.30, 0.60, "undetermined"),
        (200_000, 0.60, 0.30, "compute"),
        (200_000, 0.599, 0.30, "undetermined"),
        (5_000, 0.20, 0.85, "bandwidth"),  # short, but at the memory's limit while it runs
    ],
)
def test_profiles_of_kernels(each_ns: int, sm: float, dram: float, expected: str) -> None:
    decision = profile(each_ns, sm, dram)
    assert decision.bottleneck == expected
    assert expected == "undetermined" or decision.cap == 0.5
    assert decision.between == (
        () if expected != "undetermined" else ("bandwidth" if dram >= sm else "compute", "host")
    )


def test_one_figure_of_a_profile_proves_less() -> None:
    short = kernel("gemv", 1, 5000)
    assert limit(short, ncu_dram_throughput=0.9).bottleneck == "undetermined"
    assert limit(short, ncu_dram_throughput=0.1).bottleneck == "undetermined"
    assert limit(short, ncu_sm_throughput=0.9).bottleneck == "compute"
    # Compute is proven even without a duration; that nothing was kept waiting is not.
    assert limit(ncu_sm_throughput=0.1, ncu_dram_throughput=0.1).bottleneck == "undetermined"


def test_a_timeline_goes_before_profiles_of_kernels() -> None:
    assert profile(6_750, 0.09, 0.2, trace_kernel_busy=0.9).bottleneck == "bandwidth"
    assert profile(200_000, 0.9, 0.2, trace_kernel_busy=0.3).bottleneck == "host"


@pytest.mark.parametrize(("kind", "expected"), [("gemv", "bandwidth"), ("gemm", "compute")])
def test_short_kernels_without_a_timeline_leave_the_host_open(kind: str, expected: str) -> None:
    # nsys stats of a real decode: 78,016 kernels in 179 ms, 2.3 µs each.
    decision = limit(kernel(kind, 78_016, 2_295))
    assert (decision.bottleneck, decision.between) == ("undetermined", (expected, "host"))
    assert "2.3 µs each" in decision.reason
    assert limit(kernel(kind, 100, 10_000)).bottleneck == expected
    assert limit(kernel(kind, 78_016, 2_295), trace_kernel_busy=0.9).bottleneck == expected


def test_the_report_says_it_in_a_sentence() -> None:
    found = capture(kernel("gemv", 1, 6_750), ncu_sm_throughput=0.0915, ncu_dram_throughput=0.1966)
    verdict = diagnose(found).verdict
    assert (verdict.bottleneck, verdict.confidence <= 0.5) == ("host", True)
    assert "for 6.8 µs each" in verdict.sentence
