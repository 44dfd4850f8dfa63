"""Figures of a trace's timeline: over devices, by phase, and ranks compared."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import MS, ON_GPU, decodes

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.phase_counters import phase_measures
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.step.trace import trace_shares
from stallscope.analyzers.trace_figures import trace_measures
from stallscope.analyzers.trace_ranks import straggler_notes
from stallscope.profiler.capture import Capture, DeviceSample, Event, KernelSummary


def figure(name: str, value: object, device: str = "cuda:0", **more: str) -> Event:
    data = {"name": name, "value": value, "unit": "fraction", "device": device, "source": "hand"}
    return Event(0, "trace_figure", None, data | more)


def values(*events: Event) -> dict[str, float]:
    return {m.name: m.value for m in trace_measures(Capture(events=events))}


def test_devices_are_averaged_and_bytes_added_up() -> None:
    found = values(
        figure("idle_in_launch", 0.2),
        figure("idle_in_launch", 0.4, "cuda:1"),
        figure("host_to_device_bytes", 3e9),
        figure("host_to_device_bytes", 1e9, "cuda:1"),
    )
    assert found == {"idle_in_launch": pytest.approx(0.3), "host_to_device_bytes": 4e9}


def test_what_is_no_number_or_of_one_phase_or_unheard_of_is_left_out() -> None:
    odd = (
        figure("idle_in_sync", "much"),
        figure("idle_in_sync", float("nan")),
        figure("idle_in_sync", 0.5, phase="decode"),
        figure("idle_in_thought", 0.5),
    )
    assert values(*odd) == {}


def test_a_tracers_metrics_are_of_their_phase_by_step() -> None:
    """Over the whole trace DRAM is at 0.5; in decode alone at 0.9, in prefill at 0.2."""
    run = Capture(
        subject=ON_GPU,
        steps=decodes(5),
        device_samples=(DeviceSample(MS, "cuda:0", "nsys_dram_throughput", 0.5, "fraction"),),
        events=(
            figure("nsys_dram_throughput", 0.9, phase="decode"),
            figure("nsys_dram_throughput", 0.2, phase="prefill"),
            figure("nsys_sm_issue", 0.2, phase="decode"),
        ),
    )
    assert {m.name: m.value for m in phase_measures(run, "decode")} == {
        "dram_throughput_decode": 0.9,
        "sm_throughput_decode": 0.2,
    }
    assert {m.source for m in phase_measures(run, "decode")} == {
        "mean of nsys_dram_throughput samples of cuda:0 within decode steps",
        "mean of nsys_sm_issue samples of cuda:0 within decode steps",
    }
    rules = {rule.id: rule for rule in diagnose(run).rules}
    assert rules["bandwidth"].status == "met"
    low = dataclasses.replace(
        run, events=(figure("nsys_dram_throughput", 0.8, phase="decode"), run.events[2])
    )
    assert {rule.id: rule.status for rule in diagnose(low).rules}["bandwidth"] == "not met"


def ranks(*compute_ms: float, communication_ms: float = 0.0) -> Capture:
    rows = [
        KernelSummary(f"rank {i}", i, "decode", kind, kind, 1, round(ms * MS), None)
        for i, own in enumerate(compute_ms)
        for kind, ms in (("gemm", own), ("communication", communication_ms / (i + 1)))
    ]
    return Capture(kernels=tuple(rows))


def test_the_rank_that_computes_longest_is_named_past_five_per_cent() -> None:
    (said,) = straggler_notes(ranks(10, 10, 10.5, 10, communication_ms=50))
    assert said.startswith("Rank 2 computes for 10.5 ms where the median of 4 ranks takes 10.0 ms")
    assert straggler_notes(ranks(10, 10, 10.4, 10)) == ()
    assert straggler_notes(ranks(10)) == ()
    assert straggler_notes(ranks(0, 0)) == ()


def test_idle_time_with_work_queued_is_not_the_hosts() -> None:
    """Busy 0.45; 0.04 and 0.06 queued leave 0.51 and 0.49 for the host."""

    def verdict(queued: float) -> str:
        busy = (DeviceSample(MS, "cuda:0", "trace_kernel_busy", 0.45, "fraction"),)
        kernels = (KernelSummary("cuda:0", 0, "other", "other", "k", 100, 45 * MS, None),)
        events = (figure("idle_in_queued", queued),)
        run = Capture(kernels=kernels, device_samples=busy, events=events)
        return diagnose(run).verdict.bottleneck

    assert verdict(0.04) == "host"
    assert verdict(0.06) == "undetermined"


def test_copies_are_held_against_the_window_that_the_trace_states() -> None:
    """In 1 s kernels run for 23 ms; copies of 950 ms, or of 480, less than half the idle time."""

    def verdict(copied_ms: int) -> str:
        busy = (DeviceSample(MS, "cuda:0", "trace_kernel_busy", 0.023, "fraction"),)
        kernels = (
            KernelSummary("cuda:0", 0, "other", "gemm", "k", 100, 23 * MS, None),
            KernelSummary("cuda:0", 0, "other", "copy", "c", 9, copied_ms * MS, copied_ms * MS),
        )
        run = Capture(kernels=kernels, device_samples=busy, events=(figure("trace_window", 1.0),))
        return diagnose(run).verdict.bottleneck

    assert verdict(950) == "interconnect"
    assert verdict(480) == "host"


def test_each_phase_has_its_own_busy_share() -> None:
    """Decode idles 80 % of its steps, prefill 10 %; together the trace is 45 % busy."""
    run = Capture(
        subject=ON_GPU,
        steps=decodes(5),
        kernels=(KernelSummary("cuda:0", 0, "decode", "gemv", "k", 100, 45 * MS, None),),
        device_samples=(DeviceSample(MS, "cuda:0", "trace_kernel_busy", 0.45, "fraction"),),
        events=(
            figure("trace_kernel_busy", 0.2, phase="decode"),
            figure("idle_in_queued", 0.1, phase="decode"),
        ),
    )
    costs = tuple(StepCost(s, 0.01, 0.0, None) for s in run.steps)
    assert trace_shares(run, costs)["decode"].idle == pytest.approx(0.7)
