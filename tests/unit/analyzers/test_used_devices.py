"""A GPU that idles while the run works is somebody else's."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import MS, ON_CPU, ON_GPU, decodes, event, gauges, samples

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.observe import memory_fraction
from stallscope.analyzers.step.clocks import clock_ratios
from stallscope.analyzers.used_devices import unused_devices
from stallscope.profiler.capture import Capture, DeviceSample

OTHER = (
    *samples("nvml_gpu_util", 0.0, 0.05, device="gpu9"),
    *samples("memory_clock_hz", 1e9, 1e9, device="gpu9"),
    *samples("memory_clock_max_hz", 2e9, 2e9, device="gpu9"),
)


def stepping(device_ms: float | None, rows: tuple[DeviceSample, ...] = OTHER) -> Capture:
    device_ns = None if device_ms is None else round(device_ms * MS)
    return Capture(ON_GPU, steps=decodes(60, 1.0, device_ns=device_ns), device_samples=rows)


def serving(running: float, tokens: tuple[float, float]) -> Capture:
    rows = gauges(waiting=(0.0, 0.0), running=(running, running), output_tokens_total=tokens)
    return Capture(ON_GPU, engine_samples=rows, device_samples=OTHER)


@pytest.mark.parametrize(
    ("capture", "is_unused"),
    [
        (stepping(0.20), True),  # the run's device works a fifth of the time: never as idle as that
        (stepping(0.19), False),
        (stepping(None), False),  # nothing tells whether the device or the host took the time
        (serving(1.0, (0.0, 5.0)), True),
        (serving(0.0, (0.0, 5.0)), False),  # it served now and then
        (serving(1.0, (5.0, 5.0)), False),  # it hangs, and so does its GPU
        (stepping(0.5, samples("nvml_gpu_util", 0.06, device="gpu9")), False),
        (stepping(0.5, samples("trace_kernel_busy", 0.01)), False),  # a trace of the run itself
        # Of another GPU only counters of what it does were sampled: above 5 % it worked.
        (Capture(device_samples=(*OTHER, *samples("gpm_tensor_util", 0.06))), True),
        (Capture(device_samples=(*OTHER, *samples("gpm_tensor_util", 0.05))), False),
    ],
)
def test_whose_idle_gpu_it_is(capture: Capture, is_unused: bool) -> None:
    assert bool(unused_devices(capture)) is is_unused


def test_clocks_at_rest_are_not_the_runs() -> None:
    """At half the memory clock, a floor of 0.57 of a step would explain it."""
    assert clock_ratios(stepping(1.0)) is None
    assert diagnose(stepping(1.0)).verdict.bottleneck == "bandwidth"
    busy = tuple(s._replace(value=1.0) if s.name == "nvml_gpu_util" else s for s in OTHER)
    assert clock_ratios(stepping(1.0, busy)) is not None


def test_memory_of_an_unused_gpu_is_not_the_runs() -> None:
    """Somebody keeps a model in its memory; the run's own GPU is half full."""
    rows = (
        *samples("memory_used_bytes", 5.0),
        *samples("memory_total_bytes", 10.0),
        *samples("memory_used_bytes", 9.9, device="gpu9"),
        *samples("memory_total_bytes", 10.0, device="gpu9"),
        *OTHER,
    )
    own = memory_fraction(stepping(1.0, rows))
    assert own is not None
    assert own.value == 0.5
    both = memory_fraction(stepping(None, rows))
    assert both is not None
    assert both.value == 0.99


def test_a_run_on_the_cpu_is_not_judged_by_a_gpu() -> None:
    capture = Capture(ON_CPU, steps=decodes(60, device_ns=MS, host_ns=0), events=(event("gap"),))
    watched = dataclasses.replace(capture, device_samples=OTHER)
    assert diagnose(watched).verdict == diagnose(capture).verdict


def test_a_gpu_that_works_beside_an_idle_one_is_not_idle() -> None:
    """No busy time was sampled of the one that works, and a tenth of its tensor cores' time was."""
    found = diagnose(Capture(device_samples=(*OTHER, *samples("gpm_tensor_util", 0.1))))
    assert found.verdict.bottleneck == "undetermined"
