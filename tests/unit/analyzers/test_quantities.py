"""Which sample stands for which quantity, and what it can prove."""

from __future__ import annotations

import pytest
from capture_builders import ON_CPU, ON_GPU, samples

from stallscope.analyzers.quantities import (
    DRAM_THROUGHPUT,
    GPU_BUSY,
    SM_THROUGHPUT,
    Quantity,
    is_above,
    is_below,
    observe,
)
from stallscope.profiler.capture import Capture, DeviceSample
from stallscope.profiler.evidence import BoundSide


def seen(
    quantity: Quantity, *rows: tuple[DeviceSample, ...]
) -> list[tuple[float, BoundSide | None]]:
    capture = Capture(subject=ON_GPU, device_samples=tuple(s for row in rows for s in row))
    return [(round(m.value, 6), m.side) for m in observe(capture, "x", quantity)]


def test_the_best_value_source_is_used_and_named() -> None:
    rows = (*samples("nsys_sm_issue", 0.5), *samples("ncu_sm_throughput", 0.2, 0.4))
    (found,) = observe(Capture(device_samples=rows), "sm_throughput", SM_THROUGHPUT)
    assert (found.value, found.provenance, found.side) == (pytest.approx(0.3), "measured", None)
    assert found.source == "mean of ncu_sm_throughput samples of gpu0"


def test_bounds_are_the_tightest() -> None:
    rows = (
        samples("gpm_tensor_util", 0.05),
        samples("gpm_fp32_util", 0.10),
        samples("gpm_sm_util", 0.97),
        samples("dcgm_gr_engine_active", 0.90),
    )
    assert seen(SM_THROUGHPUT, *rows) == [(0.10, "lower"), (0.90, "upper")]


@pytest.mark.parametrize(
    "name",
    [
        "dcgm_sm_active",
        "gpm_sm_util",
        "trace_kernel_busy",
        "gpu_busy",
        "dcgm_gr_engine_active",
        "nvml_gpu_util",
    ],
)
def test_busy_and_sm_active_only_bound_sm_throughput_from_above(name: str) -> None:
    assert seen(SM_THROUGHPUT, samples(name, 0.25)) == [(0.25, "upper")]


@pytest.mark.parametrize(
    "name", ["dcgm_pipe_active", "gpm_tensor_util", "gpm_fp16_util", "nsys_tensor_active"]
)
def test_pipe_activity_only_bounds_sm_throughput_from_below(name: str) -> None:
    assert seen(SM_THROUGHPUT, samples(name, 0.25)) == [(0.25, "lower")]


def test_nvml_memory_utilisation_is_never_bandwidth() -> None:
    """Time in which the memory controller was active says nothing of bytes."""
    for name in ("nvml_mem_util", "nvml_memory_util", "utilization.memory", "memory_util"):
        for quantity in (DRAM_THROUGHPUT, SM_THROUGHPUT, GPU_BUSY):
            assert seen(quantity, samples(name, 0.95)) == []


def test_dcgm_dram_active_is_scaled_by_its_practical_peak() -> None:
    capture = Capture(device_samples=samples("dcgm_dram_active", 0.6))
    (found,) = observe(capture, "dram_throughput", DRAM_THROUGHPUT)
    assert found.value == pytest.approx(0.75)  # 0.6 / 0.8
    assert found.provenance == "derived"
    assert "(0.600)" in found.source  # the raw value is shown too
    assert "0.8" in found.source
    assert seen(DRAM_THROUGHPUT, samples("dcgm_dram_active", 0.9)) == [(1.0, None)]


def test_gpm_goes_before_dcgm_for_dram() -> None:
    rows = (samples("gpm_dram_util", 0.5), samples("dcgm_dram_active", 0.6))
    assert seen(DRAM_THROUGHPUT, *rows) == [(0.5, None)]


def test_devices_are_averaged_and_the_host_left_out() -> None:
    rows = (
        samples("gpm_dram_util", 0.2),
        samples("gpm_dram_util", 0.6, device="gpu1"),
        samples("gpm_dram_util", 1.0, device="host"),
    )
    assert seen(DRAM_THROUGHPUT, *rows) == [(0.4, None)]


def test_a_cpu_is_never_judged_by_gpu_samples() -> None:
    rows = (*samples("gpm_dram_util", 0.9), *samples("gpm_sm_util", 0.1))
    for quantity in (DRAM_THROUGHPUT, SM_THROUGHPUT, GPU_BUSY):
        assert observe(Capture(subject=ON_CPU, device_samples=rows), "x", quantity) == ()


@pytest.mark.parametrize(
    ("name", "above", "below"),
    [
        ("ncu_sm_throughput", False, False),  # a value on the line is neither
        ("gpm_tensor_util", None, False),  # at least 0.5: not below, perhaps above
        ("gpm_sm_util", False, None),  # at most 0.5: not above, perhaps below
    ],
)
def test_on_the_line(name: str, above: bool | None, below: bool | None) -> None:
    found = observe(Capture(device_samples=samples(name, 0.5)), "x", SM_THROUGHPUT)
    assert is_above(found, 0.5)[0] is above
    assert is_below(found, 0.5)[0] is below


def test_each_bound_settles_its_own_side_only() -> None:
    low = observe(Capture(device_samples=samples("gpm_tensor_util", 0.6)), "x", SM_THROUGHPUT)
    assert (is_above(low, 0.5)[0], is_below(low, 0.5)[0]) == (True, False)
    assert (is_above(low, 0.7)[0], is_below(low, 0.7)[0]) == (None, None)
    high = observe(Capture(device_samples=samples("gpm_sm_util", 0.6)), "x", SM_THROUGHPUT)
    assert (is_above(high, 0.7)[0], is_below(high, 0.7)[0]) == (False, True)
    assert (is_above(high, 0.5)[0], is_below(high, 0.5)[0]) == (None, None)
    assert is_above((), 0.5) == (None, None)
