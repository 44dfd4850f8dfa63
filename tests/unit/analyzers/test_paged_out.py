"""Memory that Windows moves to the host's: seen by what the GPU's own memory does not do."""

from __future__ import annotations

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.paged_out import observe_paged_out
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, DeviceSample

GIB = 2.0**30


def watched(
    *,
    busy: float = 1.0,
    memory_busy: float = 0.02,
    used: float = 0.98,
    model: str | None = "WDDM",
    without: str = "",
) -> Capture:
    """Return twenty samples of a GPU of 24 GiB, one a second."""
    values = {
        "nvml_gpu_util": (busy, "fraction"),
        "nvml_memory_util": (memory_busy, "fraction"),
        "memory_used_bytes": (used * 24 * GIB, "bytes"),
        "memory_total_bytes": (24 * GIB, "bytes"),
    }
    samples = tuple(
        DeviceSample(second * 1_000_000_000, "GPU 0", name, value, unit)
        for second in range(20)
        for name, (value, unit) in values.items()
        if name != without
    )
    models = [] if model is None else [model]
    return Capture(
        device_samples=samples, meta={"ended": {}, "telemetry": {"driver_models": models}}
    )


@pytest.mark.parametrize(
    ("changed", "is_seen"),
    [
        ({}, True),
        ({"busy": 0.90}, True),
        ({"busy": 0.89}, False),
        ({"memory_busy": 0.10}, True),
        ({"memory_busy": 0.11}, False),
        ({"used": 0.951}, True),
        ({"used": 0.949}, False),
        ({"model": "TCC"}, False),
        ({"model": None}, False),
        ({"without": "nvml_memory_util"}, False),
        ({"without": "memory_total_bytes"}, False),
    ],
)
def test_busy_and_full_with_memory_that_hardly_works(
    changed: dict[str, float | str | None], is_seen: bool
) -> None:
    capture = watched(**changed)  # type: ignore[arg-type]
    assert (observe_paged_out(capture, Thresholds()) is not None) is is_seen
    verdict = diagnose(capture).verdict
    assert (verdict.bottleneck == "capacity") is is_seen


def test_it_says_what_to_do_and_is_not_too_sure() -> None:
    found = diagnose(watched())
    assert found.verdict.confidence <= 0.6
    assert "98 % of its memory in use and is busy 100 % of the time" in found.verdict.sentence
    assert any("Prefer No Sysmem Fallback" in r.action for r in found.remedies)
    assert [w.action for w in found.wont_help] == ["a GPU with more FLOP/s"]
