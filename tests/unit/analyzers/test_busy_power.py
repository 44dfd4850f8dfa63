"""Busy all the time with hardly any power: said, and never made a class."""

from __future__ import annotations

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.capture import Capture, DeviceSample


def watched(
    busy: float, power_w: float, *, limit_w: float | None = 400.0, gpus: int = 1
) -> Capture:
    samples = []
    for gpu in range(gpus):
        values = {"nvml_gpu_util": busy, "power_mw": power_w * 1e3}
        values |= {} if limit_w is None else {"power_limit_mw": limit_w * 1e3}
        samples += [DeviceSample(0, f"GPU {gpu}", n, v, "1") for n, v in values.items()]
    return Capture(device_samples=tuple(samples), meta={"ended": {}})


@pytest.mark.parametrize(
    ("busy", "power_w", "limit_w", "is_said"),
    [
        (1.0, 140, 400, True),  # 0.35 of the limit
        (1.0, 141, 400, False),
        (0.95, 90, 400, True),
        (0.94, 90, 400, False),
        (1.0, 90, None, False),
    ],
)
def test_little_power(busy: float, power_w: float, limit_w: float | None, is_said: bool) -> None:
    found = diagnose(watched(busy, power_w, limit_w=limit_w))
    notes = [n for n in found.notes if "a kernel is resident, not that it works" in n]
    assert bool(notes) is is_said
    assert found.verdict.bottleneck == "undetermined"


def test_several_are_said_once() -> None:
    (note,) = diagnose(watched(1.0, 88, gpus=4)).notes
    assert note.startswith("4 GPUs are busy all the time at 22 % or less of the power limit.")
