"""Telemetry alone: an idle GPU needs nothing, a busy one leaves open why."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import gauges, samples

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.device_demand import is_telemetry_only, observe_idle
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.quantities import GPU_BUSY, TENSOR_ACTIVE, observe
from stallscope.analyzers.used_devices import unused_devices
from stallscope.profiler.capture import Capture, DeviceSample

WHOLE = Span(0, 0)


def watched(*rows: tuple[DeviceSample, ...]) -> Capture:
    return Capture(device_samples=tuple(s for row in rows for s in row))


@pytest.mark.parametrize(
    ("busy", "idle"),
    [
        ((0.0, 0.0, 0.0, 0.0), 1.0),
        ((0.05, 0.04, 0.06, 0.0), 0.75),  # one of four is above 0.05
        ((0.97, 0.9, 0.0, 1.0), 0.25),
    ],
)
def test_idle_is_the_share_of_samples_up_to_the_line(busy: tuple[float, ...], idle: float) -> None:
    found = observe_idle(watched(samples("nvml_gpu_util", *busy)), WHOLE)
    assert found is not None
    assert found[0] == idle


def test_the_busiest_device_counts() -> None:
    rows = (
        samples("nvml_gpu_util", 0.0, 0.0),
        samples("nvml_gpu_util", 0.9, 0.0, device="gpu1"),
    )
    found = observe_idle(watched(*rows), WHOLE)
    assert found is not None
    assert found[0] == 0.5


def test_the_drivers_flag_speaks_where_no_counter_does() -> None:
    flags = samples("clock_event_reasons", 1.0, 5.0, 4.0, 0.0)  # bit 1 in two of four
    found = observe_idle(watched(flags), WHOLE)
    assert found == (0.5, "samples in which the driver calls the GPU idle")
    both = observe_idle(watched(flags, samples("nvml_gpu_util", 0.9)), WHOLE)
    assert both is not None
    assert both[0] == 0.0


def test_without_either_nothing_is_said() -> None:
    assert observe_idle(watched(samples("power_mw", 70_000.0)), WHOLE) is None


def test_other_evidence_ends_telemetry() -> None:
    alone = watched(samples("nvml_gpu_util", 0.0))
    assert is_telemetry_only(alone)
    served = dataclasses.replace(alone, engine_samples=gauges(waiting=(0,), running=(1,)))
    assert not is_telemetry_only(served)
    assert not is_telemetry_only(watched(samples("ncu_sm_throughput", 0.1)))
    assert not is_telemetry_only(Capture())


def test_an_idle_gpu_is_limited_by_nothing_and_says_what_is_not_known() -> None:
    found = diagnose(watched(samples("nvml_gpu_util", *[0.0] * 10)))
    assert (found.verdict.bottleneck, found.verdict.load) == ("none", "idle")
    assert found.verdict.limits.ttft == "none"
    assert found.verdict.confidence <= 0.8
    assert found.verdict.sentence == (
        "Nothing limits this run: the GPU idled in 100 % of the samples; what was asked of it is "
        "not known."
    )


def test_nine_in_ten_is_not_yet_idle() -> None:
    busy = [0.0] * 9 + [0.9]  # 0.9 is the line, and must be passed
    assert diagnose(watched(samples("nvml_gpu_util", *busy))).verdict.bottleneck == "undetermined"
    busy = [0.0] * 19 + [0.9]
    assert diagnose(watched(samples("nvml_gpu_util", *busy))).verdict.bottleneck == "none"


def test_a_busy_gpu_alone_is_undetermined_and_says_what_to_give() -> None:
    rows = (samples("nvml_gpu_util", 0.99), samples("nvml_memory_util", 0.95))
    found = diagnose(watched(*rows))
    assert found.verdict.bottleneck == "undetermined"
    assert "give the server's log of the same time beside it" in found.verdict.sentence
    assert [r.id for r in found.rules if r.status == "met"] == []


@pytest.mark.parametrize(
    ("tensor", "dram", "bottleneck"),
    [(0.7, 0.5, "compute"), (0.1, 0.7, "bandwidth"), (0.4, 0.3, "undetermined")],
)
def test_profiling_counters_of_dcgm_decide(tensor: float, dram: float, bottleneck: str) -> None:
    rows = (
        samples("dcgm_gr_engine_active", 0.98),
        samples("dcgm_tensor_active", tensor),
        samples("dcgm_dram_active", dram),
    )
    assert diagnose(watched(*rows)).verdict.bottleneck == bottleneck


def test_bandwidth_rule_is_met_by_sm_and_dram_active() -> None:
    """SM 0.25 < 0.30, and 0.72 ÷ 0.8 = 0.90 > 0.80."""
    rows = (samples("dcgm_sm_active", 0.25), samples("dcgm_dram_active", 0.72))
    rules = {r.id: r.status for r in diagnose(watched(*rows)).rules}
    assert rules["bandwidth"] == "met"


def test_a_gpu_that_the_run_does_not_use_is_left_out_of_means() -> None:
    rows = (
        samples("dcgm_gr_engine_active", 0.9, 0.7),
        samples("dcgm_tensor_active", 0.8),
        samples("dcgm_gr_engine_active", 0.0, 0.02, device="gpu1"),
        samples("dcgm_tensor_active", 0.0, device="gpu1"),
    )
    capture = watched(*rows)
    assert unused_devices(capture) == {"gpu1"}
    (busy,) = observe(capture, "gpu_busy", GPU_BUSY)
    assert busy.value == pytest.approx(0.8)
    assert busy.source == "mean of dcgm_gr_engine_active samples of gpu0"
    (tensor,) = observe(capture, "tensor_active", TENSOR_ACTIVE)
    assert tensor.value == 0.8


def test_if_all_idle_all_count() -> None:
    rows = (samples("nvml_gpu_util", 0.0), samples("nvml_gpu_util", 0.04, device="gpu1"))
    assert unused_devices(watched(*rows)) == frozenset()


def test_windows_tell_when_the_gpu_began_to_work() -> None:
    """Idle for 300 of 600 s: of three windows the first is idle, the others are not."""
    rows = tuple(
        DeviceSample(i * 1_000_000_000, "gpu0", "nvml_gpu_util", 0.0 if i < 300 else 0.95, "1")
        for i in range(601)
    )
    found = diagnose(watched(rows))
    assert [(w.from_s, w.to_s, w.bottleneck, w.load) for w in found.windows] == [
        (0.0, 200.0, "none", "idle"),
        (200.0, 400.0, "undetermined", "served"),
        (400.0, 600.0, "undetermined", "served"),
    ]
    assert diagnose(watched(rows[:20])).windows == ()  # too short to be cut up
