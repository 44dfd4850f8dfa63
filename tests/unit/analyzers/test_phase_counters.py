"""Counters by phase: each phase's own values over long stretches, and silence over short ones."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from capture_builders import MS, ON_CPU, ON_GPU, step

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.phase_counters import phase_measures
from stallscope.analyzers.result import Diagnosis
from stallscope.analyzers.rules import by_id
from stallscope.profiler.capture import Capture, DeviceSample, Step

PREFILL = {"gpm_sm_util": 0.95, "gpm_dram_util": 0.30}
DECODE = {"gpm_sm_util": 0.25, "gpm_dram_util": 0.84}
BORDER = {"gpm_sm_util": 0.60, "gpm_dram_util": 0.57}  # a second of both


def steps(prefill_ms: int, decode_ms: int, rounds: int = 1) -> tuple[Step, ...]:
    """Ten steps of each phase a round."""
    found: list[Step] = []
    now = 0.0
    for phase, length in (("prefill", prefill_ms), ("decode", decode_ms)) * rounds:
        for _ in range(10):
            found.append(step(len(found), now, length / 10, phase=phase))
            now += length / 10
    return tuple(found)


def at(t_ms: float, values: Mapping[str, float], device: str = "gpu0") -> tuple[DeviceSample, ...]:
    return tuple(
        DeviceSample(round(t_ms * MS), device, n, v, "fraction") for n, v in values.items()
    )


def two_stretches(length_ms: int = 2000, device: str = "gpu0") -> tuple[DeviceSample, ...]:
    """Prefill's values after its first second, both mixed around the border, then decode's."""
    own = (1000, length_ms), (length_ms + 1000, 2 * length_ms)
    rows = [at(t, PREFILL, device) for t in own[0]] + [at(t, DECODE, device) for t in own[1]]
    between = [at(t, BORDER, device) for t in (500, length_ms + 1, length_ms + 999)]
    return tuple(sample for row in (*rows, *between) for sample in row)


def values(found: Diagnosis) -> dict[tuple[str, str | None], float]:
    suffixes = ("_prefill", "_decode")
    names = ("sm_throughput", "dram_throughput", "tensor_active", "gpu_busy", "power")
    wanted = {name + suffix for name in names for suffix in suffixes}
    return {(m.name, m.side): round(m.value, 6) for m in found.measures if m.name in wanted}


def missing(found: Diagnosis) -> dict[str, str]:
    return {n.what: n.reason for n in found.not_observable if n.what.startswith("device counters")}


def test_each_phase_gets_the_values_of_its_own_stretch() -> None:
    rows = two_stretches()
    found = diagnose(Capture(subject=ON_GPU, steps=steps(2000, 2000), device_samples=rows))
    assert values(found) == {
        ("sm_throughput_prefill", "upper"): 0.95,
        ("sm_throughput_decode", "upper"): 0.25,
        ("dram_throughput_prefill", None): 0.30,
        ("dram_throughput_decode", None): 0.84,
    }
    assert missing(found) == {}
    (dram,) = [m for m in found.measures if m.name == "dram_throughput_decode"]
    assert (dram.unit, dram.provenance) == ("fraction", "measured")
    assert dram.source == (
        "mean of gpm_dram_util samples of gpu0 within decode stretches of 2 s or more"
    )


def test_the_bandwidth_rule_is_about_decode_and_says_so() -> None:
    rows = two_stretches()
    apart = diagnose(Capture(subject=ON_GPU, steps=steps(2000, 2000), device_samples=rows))
    rule = by_id(apart.rules, "bandwidth")
    assert rule.status == "met"
    assert rule.reason == (
        "by bounds: SM in decode ≤ 0.250, below 0.30; DRAM in decode 0.840, above 0.80"
    )
    # The same samples over steps that interleave are of both phases: means of 4 and 3 samples.
    mixed = diagnose(Capture(subject=ON_GPU, steps=steps(200, 200, rounds=10), device_samples=rows))
    rule = by_id(mixed.rules, "bandwidth")
    dram = (2 * 0.30 + 2 * 0.84 + 3 * 0.57) / 7
    assert rule.status == "not met"
    assert rule.reason == f"DRAM {dram:.3f}, not above 0.80"


def test_just_under_two_seconds_nothing_is_a_phases_own() -> None:
    found = diagnose(
        Capture(subject=ON_GPU, steps=steps(1999, 1999), device_samples=two_stretches(1999))
    )
    assert values(found) == {}
    took = (
        "took 1.99 s; a sample averages over up to 1 s, so stretches under 2 s have none of their"
    )
    assert missing(found) == {
        f"device counters in {phase}": f"the longest stretch of only {phase} steps {took} own"
        for phase in ("prefill", "decode")
    }
    assert {n.how for n in found.not_observable if n.what.startswith("device counters")} == {
        "run with --isolate-phases, or prefill for longer at a time",
        "run with --isolate-phases, or decode for longer at a time",
    }


def test_one_phase_may_be_long_enough_alone() -> None:
    """A long generation after a short prompt, recorded without isolating anything."""
    rows = (*at(500, BORDER), *at(1100, DECODE), *at(2100, DECODE))
    found = diagnose(Capture(subject=ON_GPU, steps=steps(100, 2000), device_samples=rows))
    assert {name for name, _ in values(found)} == {"sm_throughput_decode", "dram_throughput_decode"}
    assert set(missing(found)) == {"device counters in prefill"}


def test_mixed_steps_are_neither() -> None:
    rows = two_stretches()
    mixed = tuple(s._replace(phase="mixed") for s in steps(2000, 2000))
    found = diagnose(Capture(subject=ON_GPU, steps=mixed, device_samples=rows))
    assert values(found) == {}
    assert missing(found)["device counters in decode"].startswith("no step was only decode; ")


def test_a_sampler_that_came_too_seldom() -> None:
    rows = (*at(900, PREFILL), *at(3900, DECODE))  # one second into decode is at 3.0 s
    found = diagnose(Capture(subject=ON_GPU, steps=steps(2000, 2000), device_samples=rows))
    assert {name for name, _ in values(found)} == {"sm_throughput_decode", "dram_throughput_decode"}
    reason = "no sample lies a second or more inside a stretch of only prefill steps"
    assert missing(found) == {"device counters in prefill": reason}


def test_devices_are_averaged_and_the_host_left_out() -> None:
    rows = (
        *at(3500, {"gpm_dram_util": 0.6}),
        *at(3500, {"gpm_dram_util": 0.8}, "gpu1"),
        *at(3500, {"gpm_dram_util": 0.1}, "host"),
    )
    capture = Capture(subject=ON_GPU, steps=steps(2000, 2000), device_samples=rows)
    (found,) = phase_measures(capture, "decode")
    assert found.value == pytest.approx(0.7)


def test_ranks_that_disagree_leave_nothing() -> None:
    one = steps(2000, 2000)
    other = tuple(
        s._replace(id=s.id + 20, rank=1, phase=phase)
        for s, phase in zip(one, ["decode"] * 10 + ["prefill"] * 10, strict=True)
    )
    rows = (*two_stretches(), *two_stretches(device="gpu1"))
    found = diagnose(Capture(subject=ON_GPU, steps=(*one, *other), device_samples=rows))
    assert values(found) == {}
    assert set(missing(found)) == {"device counters in prefill", "device counters in decode"}


def test_a_cpu_run_has_no_counters_by_phase_and_lacks_none() -> None:
    rows = (*two_stretches(), *at(3500, {"power_mw": 9e4}))
    found = diagnose(Capture(subject=ON_CPU, steps=steps(2000, 2000), device_samples=rows))
    assert values(found) == {}
    assert missing(found) == {}


def test_power_busy_and_tensor() -> None:
    rows = (
        *at(1500, {"power_mw": 390_000, "nvml_gpu_util": 1.0, "gpm_tensor_util": 0.7}),
        *at(3100, {"power_mw": 240_000, "nvml_gpu_util": 0.9, "gpm_tensor_util": 0.05}),
        *at(3900, {"power_mw": 250_000, "nvml_gpu_util": 1.0, "gpm_tensor_util": 0.07}),
    )
    found = diagnose(Capture(subject=ON_GPU, steps=steps(2000, 2000), device_samples=rows))
    assert values(found) == {
        ("power_prefill", None): 390.0,
        ("power_decode", None): 245.0,
        ("gpu_busy_prefill", None): 1.0,
        ("gpu_busy_decode", None): 0.95,
        ("tensor_active_prefill", None): 0.7,
        ("tensor_active_decode", None): 0.06,
        ("sm_throughput_prefill", "lower"): 0.7,
        ("sm_throughput_prefill", "upper"): 1.0,
        ("sm_throughput_decode", "lower"): 0.06,
        ("sm_throughput_decode", "upper"): 0.95,
    }


def test_a_kernel_profile_is_of_no_stretch_and_goes_before_bounds() -> None:
    """ncu's figures are of kernels, not of the second in which they were written down."""
    rows = (*at(3500, {"ncu_sm_throughput": 0.2}), *two_stretches())
    found = diagnose(Capture(subject=ON_GPU, steps=steps(2000, 2000), device_samples=rows))
    assert ("sm_throughput_decode", None) not in values(found)
    reason = by_id(found.rules, "bandwidth").reason
    assert reason == "SM 0.200, below 0.30; DRAM in decode 0.840, above 0.80"
