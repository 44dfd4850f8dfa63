"""Memory in use on a GPU that idles is an engine's budget."""

from __future__ import annotations

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.capture import Capture, DeviceSample, EngineSample


def watched(used: float, busy: float = 0.0) -> Capture:
    values = {"nvml_gpu_util": busy, "memory_used_bytes": used * 1e9, "memory_total_bytes": 1e9}
    return Capture(
        device_samples=tuple(DeviceSample(0, "GPU 0", n, v, "1") for n, v in values.items())
    )


def is_said(capture: Capture) -> bool:
    return any("its budget, not what the model needs" in note for note in diagnose(capture).notes)


@pytest.mark.parametrize(
    ("used", "busy", "said"),
    [(0.5, 0.0, True), (0.49, 0.0, False), (0.9, 0.05, True), (0.9, 0.06, False)],
)
def test_half_of_the_memory_of_a_gpu_that_idles(used: float, busy: float, said: bool) -> None:
    assert is_said(watched(used, busy)) is said


def test_beside_an_engine_the_engine_tells() -> None:
    capture = watched(0.9)
    idle = tuple(EngineSample(0, "0", name, 0.0) for name in ("running", "waiting"))
    told = Capture(device_samples=capture.device_samples, engine_samples=idle)
    assert not is_said(told)
    assert not is_said(Capture(device_samples=capture.device_samples[:2]))
