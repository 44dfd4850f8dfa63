"""Counters beside a budget: agreement makes surer, contradiction is said and makes less sure."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import ON_CPU, ON_GPU, decodes, samples

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.step.agreement import with_counters
from stallscope.analyzers.step.limit import Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture

T = Thresholds()


def quality(bottleneck: str, share: float = 0.8, **seen: float) -> float:
    """The quality of a budget's decision after counters: 0.4 before."""
    rows = tuple(s for name, v in seen.items() for s in samples(name, v))
    decision = Decision(bottleneck, share, 0.0, None, 0.1, 0.4, "a test")
    return with_counters(decision, Capture(device_samples=rows), T).quality


AGREES, SILENT, CONTRADICTS = pytest.approx(0.7), 0.4, pytest.approx(0.1)


def test_bandwidth_goes_by_dram_and_busy_tensor_cores() -> None:
    # 0.8 of the step at the peak is a DRAM throughput of 0.8; 0.6 is three quarters of it.
    assert quality("bandwidth", gpm_dram_util=0.61) == AGREES
    assert quality("bandwidth", gpm_dram_util=0.59) == SILENT
    assert quality("bandwidth", gpm_dram_util=0.4) == SILENT
    assert quality("bandwidth", gpm_dram_util=0.39) == CONTRADICTS
    assert quality("bandwidth", gpm_dram_util=0.8, gpm_tensor_util=0.6) == CONTRADICTS
    assert quality("bandwidth") == SILENT


def test_compute_goes_by_sms_and_busy_tensor_cores() -> None:
    assert quality("compute", ncu_sm_throughput=0.61) == AGREES
    assert quality("compute", ncu_sm_throughput=0.39) == CONTRADICTS
    assert quality("compute", gpm_tensor_util=0.61) == AGREES
    # Arithmetic need not run on tensor cores.
    assert quality("compute", gpm_tensor_util=0.0) == SILENT


def test_host_goes_by_a_device_that_waits() -> None:
    assert quality("host", nvml_gpu_util=0.39) == AGREES
    # A resident kernel does not mean a busy device.
    assert quality("host", nvml_gpu_util=1.0) == SILENT


def test_the_report_says_what_the_counters_show() -> None:
    """0.5 ms of weights and KV in 0.55 ms: bandwidth at 91 %."""
    steps = decodes(60, 0.55, device_ns=550_000, host_ns=0)
    plain = Capture(subject=ON_GPU, steps=steps)

    def seen(dram: float, tensor: float) -> Capture:
        rows = (*samples("gpm_dram_util", dram), *samples("gpm_tensor_util", tensor))
        return dataclasses.replace(plain, device_samples=rows)

    alone, agree, differ = (diagnose(c).verdict for c in (plain, seen(0.9, 0.1), seen(0.05, 0.9)))
    assert {alone.bottleneck, agree.bottleneck, differ.bottleneck} == {"bandwidth"}
    assert differ.confidence < alone.confidence < agree.confidence
    assert "counters show DRAM at 5 % and tensor cores at 90 %" in differ.sentence
    assert "counters" not in agree.sentence


def test_counters_that_decided_do_not_agree_with_themselves() -> None:
    rows = (*samples("gpm_dram_util", 0.7), *samples("gpm_tensor_util", 0.1))
    found = diagnose(Capture(device_samples=rows)).verdict
    # quality 0.8 · margin 1 · stable · (1 − 0.3 / 2) = 0.68
    assert found.grounds is not None
    assert (found.bottleneck, found.grounds.weight) == ("bandwidth", pytest.approx(0.68))


def test_a_gpu_says_nothing_of_a_run_on_the_cpu() -> None:
    steps = decodes(60, 0.55, device_ns=550_000, host_ns=0)
    with_gpu = Capture(subject=ON_CPU, steps=steps, device_samples=samples("gpm_dram_util", 0.05))
    without = dataclasses.replace(with_gpu, device_samples=())
    assert diagnose(with_gpu).verdict == diagnose(without).verdict


def test_a_counter_that_agrees_shows_that_no_unseen_host_limits() -> None:
    held = Decision("bandwidth", 0.8, 0.0, None, 0.1, 0.4, "a test", cap=0.65)
    for dram, most in ((0.61, 0.99), (0.59, 0.65)):
        seen = Capture(device_samples=samples("gpm_dram_util", dram))
        assert with_counters(held, seen, T).cap == most
