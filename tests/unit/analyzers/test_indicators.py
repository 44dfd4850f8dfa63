"""Without a budget: each indicator just past its line, just under it, and blind."""

from __future__ import annotations

import pytest
from step_rows import step

from stallscope.analyzers.step.indicators import CANDIDATES, limit_without_budget
from stallscope.analyzers.step.limit import Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, DeviceSample, EngineSample, KernelSummary
from stallscope.profiler.devices import load_device
from stallscope.profiler.spec import DeviceSpec, Subject

MISSING = "the model is not known (add --model PRESET or config.json)"


MS = 1_000_000


def kernel(kind: str, busy: int, exposed: int | None = None, launches: int = 1) -> KernelSummary:
    """Kernels that ran for `busy` ms in all."""
    exposed_ns = None if exposed is None else exposed * MS
    return KernelSummary("gpu0", 0, "decode", kind, kind, launches, busy * MS, exposed_ns)


def limit(*kernels: KernelSummary, device: DeviceSpec | None = None, **samples: float) -> Decision:
    rows = tuple(DeviceSample(0, "gpu0", n, v, "fraction") for n, v in samples.items())
    capture = Capture(Subject(device=device), device_samples=rows, kernels=kernels)
    return limit_without_budget(capture, Thresholds(), MISSING)


def test_blind_says_what_to_type() -> None:
    decision = limit()
    assert decision.bottleneck == "undetermined"
    assert decision.reason.endswith("(add --model PRESET or config.json)")


def test_an_idle_trace_is_the_hosts() -> None:
    assert limit(trace_kernel_busy=0.49).bottleneck == "host"
    assert limit(trace_kernel_busy=0.51).bottleneck == "undetermined"
    assert "51" in limit(trace_kernel_busy=0.49).reason
    # Only a trace knows the steady window; a sampled gauge does not.
    assert limit(nvml_gpu_util=0.1, gpu_busy=0.1).bottleneck == "undetermined"


def test_a_device_that_is_rarely_busy_does_not_limit() -> None:
    waiting = limit(nvml_gpu_util=0.49)
    assert waiting.bottleneck == "undetermined"
    assert waiting.between == ("host", "interconnect", "client")
    assert waiting.reason.startswith("a kernel ran 49 % of the time at most")
    assert waiting.reason.endswith("(add --model PRESET or config.json)")
    assert limit(nvml_gpu_util=0.5).between == CANDIDATES
    # SM activity is a mean over the SMs: a kernel on a few of them may fill the time.
    assert limit(dcgm_sm_active=0.1).between == CANDIDATES


def test_one_busy_moment_leaves_all_candidates() -> None:
    rows = tuple(
        DeviceSample(t, "gpu0", "nvml_gpu_util", v, "fraction") for t, v in ((0, 0.1), (1, 0.9))
    )
    decision = limit_without_budget(Capture(device_samples=rows), Thresholds(), MISSING)
    assert decision.between == CANDIDATES  # the mean is 0.5, yet it may limit while it works


def test_counters_beside_a_log_may_be_of_another_time() -> None:
    rows = (DeviceSample(0, "gpu0", "nvml_gpu_util", 0.1, "fraction"),)
    gauges = (EngineSample(0, "engine0", "running", 8.0),)
    capture = Capture(device_samples=rows, engine_samples=gauges)
    assert limit_without_budget(capture, Thresholds(), MISSING).between == CANDIDATES


def test_exposed_copies_in_the_idle_time_are_the_interconnects() -> None:
    # Kernels of 40 ms at 40 % busy: a window of 100 ms, 60 idle. Half of that is 30.
    gemm = kernel("gemm", 35)
    assert limit(gemm, kernel("copy", 5, exposed=31), trace_kernel_busy=0.4).bottleneck == (
        "interconnect"
    )
    assert limit(
        gemm, kernel("communication", 5, exposed=29), trace_kernel_busy=0.4
    ).bottleneck == ("host")
    # The exposed time of anything else is no transfer; unknown exposure is none.
    assert limit(kernel("gemm", 40, exposed=60), trace_kernel_busy=0.4).bottleneck == "host"
    assert limit(gemm, kernel("copy", 5), trace_kernel_busy=0.4).bottleneck == "host"


def test_tensor_cores_at_work_are_compute() -> None:
    assert limit(gpm_tensor_util=0.60).bottleneck == "compute"
    assert limit(gpm_tensor_util=0.599).bottleneck == "undetermined"


def test_dram_at_work_with_idle_tensor_cores_is_bandwidth() -> None:
    assert limit(gpm_dram_util=0.60, gpm_tensor_util=0.299).bottleneck == "bandwidth"
    assert limit(gpm_dram_util=0.599, gpm_tensor_util=0.1).bottleneck == "undetermined"
    assert limit(gpm_dram_util=0.9, gpm_tensor_util=0.30).bottleneck == "undetermined"
    # Blind on either side it stays open.
    assert limit(gpm_dram_util=0.9).bottleneck == "undetermined"
    assert limit(gpm_tensor_util=0.1).bottleneck == "undetermined"


def test_dcgm_dram_is_scaled_to_its_practical_peak() -> None:
    # 0.49 / 0.8 = 0.6125; 0.47 / 0.8 = 0.5875.
    assert limit(dcgm_dram_active=0.49, dcgm_tensor_active=0.1).bottleneck == "bandwidth"
    assert limit(dcgm_dram_active=0.47, dcgm_tensor_active=0.1).bottleneck == "undetermined"


def test_nvml_memory_utilisation_is_never_bandwidth() -> None:
    decision = limit(nvml_memory_util=0.99, gpm_tensor_util=0.1)
    assert decision.bottleneck == "undetermined"


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ({"gemm": 60, "attention": 40}, "compute"),
        ({"gemm": 59, "attention": 41}, "undetermined"),
        ({"gemv": 40, "elementwise": 15, "norm": 5, "attention": 40}, "bandwidth"),
        ({"gemv": 40, "elementwise": 14, "norm": 5, "attention": 41}, "undetermined"),
    ],
)
def test_kernel_classes(kinds: dict[str, int], expected: str) -> None:
    decision = limit(*(kernel(kind, busy) for kind, busy in kinds.items()))
    assert decision.bottleneck == expected
    assert expected == "undetermined" or decision.cap == 0.6


def test_idle_comes_before_counters_and_counters_before_classes() -> None:
    gemv = kernel("gemv", 100)
    assert limit(gemv, trace_kernel_busy=0.4, gpm_tensor_util=0.9).bottleneck == "host"
    assert limit(gemv, trace_kernel_busy=0.9, gpm_tensor_util=0.9).bottleneck == "compute"
    assert limit(gemv, trace_kernel_busy=0.9).bottleneck == "bandwidth"


def test_a_run_on_the_cpu_is_not_judged_by_a_gpu() -> None:
    cpu = DeviceSpec("cpu", {"fp32": 1e11}, None, 1e10, is_cpu=True)
    assert limit(device=cpu, gpm_tensor_util=0.9).bottleneck == "undetermined"
    assert limit(device=load_device("h100-sxm"), gpm_tensor_util=0.9).bottleneck == "compute"


def in_decode(rows: int | None, *kernels: KernelSummary) -> Decision:
    """Kernels of decode steps that say they have `rows` rows."""
    steps = tuple(step(i, i + 1, decode_requests=rows or 1, logit_rows=rows) for i in range(3))
    return limit_without_budget(Capture(steps=steps, kernels=kernels), Thresholds(), MISSING)


def test_matrix_products_of_few_rows_read_weights() -> None:
    """64 rows in two bytes: 64 FLOP a byte, under every ridge of the table; 65 are left open."""
    few = in_decode(64, kernel("gemm", 61), kernel("other", 39))
    assert few.bottleneck == "bandwidth"
    assert "decode of 64 rows a step" in few.reason
    assert in_decode(64, kernel("gemm", 59), kernel("other", 41)).bottleneck == "undetermined"
    assert in_decode(64, kernel("attention", 61), kernel("other", 39)).bottleneck == "bandwidth"
    many = in_decode(65, kernel("gemm", 61), kernel("other", 39))
    assert many.bottleneck == "compute"
    assert in_decode(None, kernel("gemm", 61), kernel("other", 39)).bottleneck == "compute"


def test_every_datacenter_gpu_has_its_ridge_above_few_rows() -> None:
    for name in ("t4", "a10", "l4", "l40s", "a100-sxm4-40gb", "h100-sxm", "h200-sxm", "b200"):
        device = load_device(name)
        assert device.peak_flops["fp16"] / device.memory_bytes_per_s > 100
