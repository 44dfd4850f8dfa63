"""Slow clocks win only where they explain what the nominal ones do not."""

from __future__ import annotations

import pytest

from stallscope.analyzers.judge import step_decision
from stallscope.analyzers.result import BudgetPart, PhaseBudget
from stallscope.analyzers.step.clocks import ClockRatio, clock_ratios, slow_clocks_explain
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, DeviceSample
from stallscope.profiler.spec import DeviceSpec, Subject

T = Thresholds()


def budget(**shares: float) -> PhaseBudget:
    rows = tuple(BudgetPart(p, s, s, "estimated", "roofline") for p, s in shares.items())
    return PhaseBudget("decode", 1, 1.0, 1.0, 1.0, rows)


def clocks(*values: tuple[str, float], device: DeviceSpec | None = None) -> Capture:
    rows = tuple(DeviceSample(i, "gpu0", name, v, "Hz") for i, (name, v) in enumerate(values))
    return Capture(Subject(device=device), device_samples=rows)


def test_ratio_is_the_mean_over_the_nominal() -> None:
    seen = clocks(("sm_clock_hz", 0.6e9), ("sm_clock_hz", 0.8e9), ("sm_clock_max_hz", 1.4e9))
    assert clock_ratios(seen) == ClockRatio(pytest.approx(0.5), 1.0, ("sm",))
    both = clocks(("memory_clock_hz", 0.9e9), ("memory_clock_max_hz", 1.2e9))
    assert clock_ratios(both) == ClockRatio(1.0, pytest.approx(0.75), ("memory",))


def test_only_a_clock_that_was_sampled_is_told() -> None:
    assert ClockRatio(0.5, 1.0, ("sm",)).text == "50 % (SM)"
    assert ClockRatio(1.0, 0.75, ("memory",)).text == "75 % (memory)"
    assert ClockRatio(0.5, 0.75).text == "50 % (SM) and 75 % (memory)"


def test_no_ratio_without_a_nominal_or_with_zeros_or_on_a_cpu() -> None:
    assert clock_ratios(Capture()) is None
    assert clock_ratios(clocks(("sm_clock_hz", 1e9))) is None
    assert clock_ratios(clocks(("memory_clock_hz", 0.0), ("memory_clock_max_hz", 0.0))) is None
    cpu = DeviceSpec("cpu", {"fp32": 1e11}, None, 1e10, is_cpu=True)
    slow = (("sm_clock_hz", 0.5e9), ("sm_clock_max_hz", 1e9))
    assert clock_ratios(clocks(*slow, device=cpu)) is None


def test_the_floor_at_observed_clocks_must_explain_what_the_nominal_does_not() -> None:
    half = ClockRatio(sm=0.5, memory=1.0)
    # 0.38 of arithmetic at half the clock takes 0.76 of the step; 0.37 takes 0.74.
    assert slow_clocks_explain(budget(compute=0.38), half, T)
    assert not slow_clocks_explain(budget(compute=0.37), half, T)
    # Explained at nominal clocks already: 0.75 is, 0.74 is not.
    assert not slow_clocks_explain(budget(compute=0.4, host=0.35), half, T)
    assert slow_clocks_explain(budget(compute=0.4, host=0.34), half, T)


def test_each_clock_stretches_its_own_parts() -> None:
    memory = ClockRatio(sm=1.0, memory=0.5)
    assert slow_clocks_explain(budget(weights=0.3, kv=0.1), memory, T)
    assert not slow_clocks_explain(budget(compute=0.4), memory, T)
    # Host, communication and transfer do not run on the device's clocks.
    both = ClockRatio(sm=0.5, memory=0.5)
    assert not slow_clocks_explain(budget(communication=0.4, transfer=0.1, host=0.1), both, T)


def test_a_clock_a_few_per_cent_low_is_not_slow() -> None:
    """58.5 ms of prefill at 1.37 of 1.41 GHz: the floor explains 74 % either way."""
    boost = ClockRatio(sm=1.37 / 1.41, memory=1.0)
    assert not slow_clocks_explain(budget(compute=0.74), boost, T)
    # A tenth is a deficit, and must lift the floor by a tenth of the step as well.
    tenth = ClockRatio(sm=0.9, memory=1.0)
    assert not slow_clocks_explain(budget(compute=0.70), tenth, T)  # 0.70 / 0.9 = 0.778
    fifth = ClockRatio(sm=0.8, memory=1.0)
    assert slow_clocks_explain(budget(compute=0.70), fifth, T)  # 0.875
    # A memory clock that is nearly nominal adds nothing to a slow SM clock.
    both = ClockRatio(sm=0.5, memory=0.95)
    assert not slow_clocks_explain(budget(weights=0.74), both, T)


def test_slow_clocks_override_the_step_limit() -> None:
    slow = clocks(("sm_clock_hz", 0.7e9), ("sm_clock_max_hz", 1.4e9))
    decision = step_decision(slow, budget(compute=0.45), "", T)
    assert (decision.bottleneck, decision.next_class) == ("device", "compute")
    # 0.45 of arithmetic at half the clock is 0.9 of the step.
    assert (decision.share, decision.next_share) == (pytest.approx(0.9), pytest.approx(0.45))
    unsettled = step_decision(slow, budget(compute=0.39), "", T)
    assert (unsettled.bottleneck, unsettled.next_class) == ("device", "compute")
    assert "50" in decision.reason
    full = clocks(("sm_clock_hz", 1.4e9), ("sm_clock_max_hz", 1.4e9))
    assert step_decision(full, budget(compute=0.45), "", T).bottleneck == "compute"
