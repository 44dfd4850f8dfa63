"""A driver's reason for low clocks is named, and chooses what to change."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import samples
from test_clocks import T, budget, clocks

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.judge import step_decision
from stallscope.analyzers.result import Diagnosis
from stallscope.analyzers.step.indicators import CANDIDATES
from stallscope.analyzers.step.slowdown import main_slowdown
from stallscope.analyzers.whatif.clock_remedies import clocks_back
from stallscope.profiler.capture import Capture

HEAT, CAP, SET, SLOWDOWN, IDLE = 0x40, 0x4, 0x2, 0x8, 0x1


def slowed(*masks: int, sm_hz: float = 0.9e9) -> Capture:
    """A GPU of 1.98 GHz that was busy all the time, by its own counters alone."""
    rows = (
        *samples("sm_clock_hz", *(sm_hz,) * 40),
        *samples("sm_clock_max_hz", *(1.98e9,) * 40),
        *samples("nvml_gpu_util", *(0.99,) * 40),
        *samples("clock_event_reasons", *map(float, masks)),
    )
    return Capture(device_samples=rows)


def actions(found: Diagnosis) -> list[str]:
    return [" ".join([r.action, *r.flag.values()]) for r in found.remedies]


@pytest.mark.parametrize(
    ("masks", "kind", "share"),
    [
        ((HEAT | SLOWDOWN,) * 4, "heat", 1.0),
        ((0x20, 0x20, 0, 0), "heat", 0.5),
        ((0x20, 0, 0), None, 0.0),  # in a third of the samples
        ((CAP, CAP, CAP, HEAT), "power", 0.75),
        ((0x80,), "power", 1.0),
        ((SET,), "set", 1.0),
        ((SLOWDOWN,), "hardware", 1.0),
        ((IDLE | SET,), None, 0.0),  # nothing runs
        ((0,), None, 0.0),
        ((), None, 0.0),
    ],
)
def test_the_reason_of_most_samples(masks: tuple[int, ...], kind: str | None, share: float) -> None:
    found = main_slowdown(slowed(*masks))
    assert (found and found.kind, found.share if found else 0.0) == (kind, share)


def test_telemetry_alone_names_the_device_where_heat_slows_it() -> None:
    found = diagnose(slowed(*(HEAT,) * 40))
    assert found.verdict.bottleneck == "undetermined"
    assert found.verdict.between == ("device", *CANDIDATES)
    # 0.9 of 1.98 GHz
    assert "45 % of nominal, by a thermal slowdown in 100 % of the samples" in (
        found.verdict.sentence
    )
    assert "airflow" in actions(found)[0]


def test_a_power_cap_is_usual_and_comes_last() -> None:
    found = diagnose(slowed(*(CAP,) * 40))
    assert found.verdict.between == (*CANDIDATES, "device")
    assert "nvidia-smi -pl" in actions(found)[0]


@pytest.mark.parametrize("capture", [slowed(*(HEAT,) * 40, sm_hz=1.9e9), slowed(*(0,) * 40)])
def test_nominal_clocks_and_no_reason_add_no_candidate(capture: Capture) -> None:
    found = diagnose(capture)
    assert found.verdict.between == CANDIDATES
    assert not found.remedies


def test_a_step_that_is_mostly_unexplained_may_be_the_devices() -> None:
    hot = slowed(*(HEAT,) * 40)
    # 0.21 of bytes that the SM clock does not slow: 0.79 is told by nothing.
    found = step_decision(hot, budget(weights=0.21, unexplained=0.79), "", T)
    assert (found.bottleneck, found.between) == ("undetermined", ("device", "bandwidth", "host"))
    cool = step_decision(slowed(0), budget(weights=0.21, unexplained=0.79), "", T)
    assert cool.between == ("bandwidth", "host")


def test_slow_clocks_say_why() -> None:
    slow = clocks(("sm_clock_hz", 0.7e9), ("sm_clock_max_hz", 1.4e9))
    hot = dataclasses.replace(
        slow, device_samples=(*slow.device_samples, *samples("clock_event_reasons", 64.0))
    )
    found = step_decision(hot, budget(compute=0.45), "", T)
    assert found.bottleneck == "device"
    assert found.reason.endswith("of nominal, by a thermal slowdown in 100 % of the samples")


@pytest.mark.parametrize(
    ("kind", "first"),
    [("heat", "airflow"), ("power", "-pl"), ("set", "-rgc"), ("hardware", "-q"), (None, "-q")],
)
def test_each_reason_has_its_remedy(kind: str | None, first: str) -> None:
    remedies = clocks_back(kind)
    assert first in " ".join([remedies[0].action, *remedies[0].flag.values()])
    assert all(r.gain is None and r.cost and r.check for r in remedies)
