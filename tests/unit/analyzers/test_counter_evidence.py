"""What would refute a verdict, tried: each just past its line, just under it, and blind."""

from __future__ import annotations

import dataclasses
import json

import pytest
from capture_builders import MS, ON_GPU, decodes, gauges
from derivation import faults
from test_standstill import frozen

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Diagnosis
from stallscope.profiler.capture import Capture, DeviceSample
from stallscope.reports.json_report import render

CAP, READING = 0x4, Capture(ON_GPU, steps=decodes(60, device_ns=MS, host_ns=0))


def sampled(device: str = "gpu0", **values: float) -> tuple[DeviceSample, ...]:
    """Ten samples of each, a second apart."""
    return tuple(
        DeviceSample(i * 1000 * MS, device, name, value, "")
        for name, value in values.items()
        for i in range(10)
    )


def capped(memory_hz: float | None, sm_hz: float = 1.35e9, share: float = 1.0) -> Diagnosis:
    """A step that reads memory half of the time, under an active power cap."""
    known = {"sm_clock_hz": sm_hz, "sm_clock_max_hz": 1.5e9}
    if memory_hz is not None:
        known |= {"memory_clock_hz": memory_hz, "memory_clock_max_hz": 10e9}
    flags = tuple(
        DeviceSample(i * MS, "gpu0", "clock_event_reasons", CAP if i < 100 * share else 0, "")
        for i in range(100)
    )
    return diagnose(dataclasses.replace(READING, device_samples=(*sampled(**known), *flags)))


def notes(found: Diagnosis) -> str:
    return " ".join(note for note in found.notes if "power cap" in note)


def test_a_power_cap_with_the_memory_clock_intact_does_not_slow_decode() -> None:
    # The floor is 0.516 of the step: at 0.6 of the memory clock it explains 0.86 of it.
    found = capped(memory_hz=10e9)
    assert found.verdict.bottleneck == "bandwidth"
    assert "the cap slows what computes (prefill), not what reads memory (decode)" in notes(found)
    assert "the SM clock at 90 % of its highest" in notes(found)
    assert "raising the power limit" in [w.action for w in found.wont_help]


def test_a_memory_clock_that_fell_does() -> None:
    assert capped(memory_hz=6e9).verdict.bottleneck == "device"
    assert "the memory clock ran at 60 % of its highest" in notes(capped(memory_hz=6e9))
    assert "the power cap or a power brake in 100 %" in capped(memory_hz=6e9).verdict.sentence
    assert "nvidia-smi -pl" in capped(memory_hz=6e9).remedies[0].flag["any"]
    # 0.516 / 0.7 = 0.737 of the step: under the 0.75 that explain it.
    assert capped(memory_hz=7e9).verdict.bottleneck == "bandwidth"


def test_a_cap_whose_memory_clock_nobody_sampled_claims_nothing() -> None:
    found = capped(memory_hz=None)
    assert found.verdict.bottleneck == "bandwidth"
    assert "was not sampled" in notes(found)


@pytest.mark.parametrize(("share", "is_said"), [(0.05, True), (0.04, False)])
def test_a_cap_that_was_hardly_active_is_not_worth_a_word(share: float, is_said: bool) -> None:
    assert bool(notes(capped(memory_hz=10e9, share=share))) == is_said


def queued(used: float | None, running: float = 12.0) -> Diagnosis:
    """Eight wait while `running` of at most 64 run."""
    count = 12
    series = {"running": tuple(running + i % 2 for i in range(count)), "waiting": (8.0,) * count}
    if used is not None:
        series["kv_used_fraction"] = (used,) * count
    subject = dataclasses.replace(ON_GPU, model=None, max_num_seqs=64)
    return diagnose(Capture(subject, engine_samples=gauges(1000.0, **series)))


def test_a_queue_with_kv_free_and_running_below_its_cap_is_not_capacity() -> None:
    free = queued(0.79).verdict
    assert free.bottleneck == "undetermined"
    assert "capacity" not in free.between
    # What is free is less than one of the twelve or thirteen holds from 0.929 on.
    assert queued(0.93).verdict.bottleneck == "capacity"
    assert queued(0.92).verdict.bottleneck == "undetermined"
    blind = queued(None).verdict
    assert blind.bottleneck == "undetermined"
    assert "capacity" in blind.between


def hung(busy: float | None = 1.0, power_w: float | None = 140.0, other: float = 1.0) -> Diagnosis:
    """Twelve requests and no token for a minute, on two GPUs of 700 W."""
    rows: tuple[DeviceSample, ...] = ()
    for device, seen in (("gpu0", busy), ("gpu1", other)):
        if seen is not None:
            rows += sampled(device, nvml_gpu_util=seen)
        if power_w is not None:
            rows += sampled(device, power_mw=power_w * 1e3, power_limit_mw=700e3)
    return diagnose(Capture(engine_samples=frozen(60), device_samples=rows))


def test_a_gpu_that_is_busy_at_low_power_with_no_tokens_hangs() -> None:
    verdict = hung().verdict
    assert (verdict.bottleneck, verdict.between) == ("undetermined", ("interconnect", "device"))
    assert "a device is busy 100 % of the time at 20 % of the power limit" in verdict.sentence
    assert "a collective that hangs" in verdict.sentence
    report = json.loads(render(hung()))
    assert faults(report) == []
    assert next(s["id"] for s in report["explain"] if s["answer"] == "decides") == "hang"


def test_a_queue_before_a_gpu_that_hangs() -> None:
    """None runs and six wait, a minute long."""
    rows = sampled(nvml_gpu_util=1.0, power_mw=140e3, power_limit_mw=700e3)
    stuck = frozen(60, running=0.0, waiting=6.0)
    found = diagnose(Capture(engine_samples=stuck, device_samples=rows))
    assert found.verdict.between == ("device", "host")
    assert "a kernel that does not end" in found.verdict.sentence
    assert faults(json.loads(render(found))) == []


def test_one_rank_that_spins_is_enough() -> None:
    """As reported of TensorRT-LLM: one GPU at 100 %, the others at 0, all at a fifth of 700 W."""
    assert hung(other=0.0).verdict.between == ("interconnect", "device")


@pytest.mark.parametrize(
    ("busy", "power_w", "is_hang"),
    [
        (0.96, 140.0, True),
        (0.94, 140.0, False),
        (1.0, 279.0, True),
        (1.0, 281.0, False),  # over 0.4 of 700 W
        (None, 140.0, False),
        (1.0, None, False),
    ],
)
def test_where_it_is_a_hang(busy: float | None, power_w: float | None, is_hang: bool) -> None:
    other = 0.0 if busy is not None else 0.5
    verdict = hung(busy, power_w, other).verdict
    assert (verdict.bottleneck == "undetermined") == is_hang
    assert (verdict.limit == "stalled") != is_hang


def test_a_gpu_that_is_busy_at_low_power_and_makes_tokens_does_not_hang() -> None:
    rows = sampled(nvml_gpu_util=1.0, power_mw=140e3, power_limit_mw=700e3)
    makes = diagnose(Capture(engine_samples=frozen(0, moving=60), device_samples=rows))
    assert "hang" not in makes.verdict.sentence
    assert not [n for n in makes.notes if "kernels that only wait" in n]


def test_where_no_tokens_are_known_it_is_said_and_not_concluded() -> None:
    found = diagnose(
        Capture(device_samples=sampled(nvml_gpu_util=1.0, power_mw=140e3, power_limit_mw=700e3))
    )
    assert found.verdict.bottleneck == "undetermined"
    assert [n for n in found.notes if "Whether tokens come out tells" in n]
    more = diagnose(
        Capture(device_samples=sampled(nvml_gpu_util=1.0, power_mw=500e3, power_limit_mw=700e3))
    )
    assert not [n for n in more.notes if "Whether tokens come out tells" in n]
