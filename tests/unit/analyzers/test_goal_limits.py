"""The limit of each goal, and the headline that `goal` picks."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import (
    MS,
    ON_CPU,
    batch_one,
    decodes,
    event,
    kernel,
    request,
    samples,
    step,
    timed_linears,
)

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Limits
from stallscope.profiler.capture import Capture


def queued(word: str = "seqs", **facts: int) -> Capture:
    """Eight requests served one after the other: the mean wait is 70 of 90 ms."""
    rows = tuple(request(i, 0, 20 * i, 20 * i + 1, 20 * i + 20) for i in range(8))
    steps = decodes(
        160, waiting=3, running=1, blocked_by=word, kv_used_bytes=10, kv_total_bytes=100, **facts
    )
    return Capture(subject=ON_CPU, events=timed_linears(), requests=rows, steps=steps)


def test_each_goal_has_its_limit() -> None:
    limits = diagnose(queued()).verdict.limits
    assert limits == Limits(ttft="scheduling", tpot="bandwidth", throughput="scheduling")


def test_a_served_run_is_judged_by_the_steps_of_each_goal() -> None:
    """Prefill steps of which the host takes 0.9; decode steps bound by memory."""
    prefill = tuple(
        step(i, i, 1, phase="prefill", host_ns=900_000, device_ns=100_000) for i in range(10)
    )
    decode = tuple(step(i, i, 1, host_ns=0, device_ns=MS) for i in range(10, 60))
    limits = diagnose(dataclasses.replace(batch_one(), steps=prefill + decode)).verdict.limits
    assert (limits.ttft, limits.tpot) == ("undetermined", "bandwidth")  # 0.9 + a floor above it
    untimed = Capture(subject=ON_CPU, steps=prefill + decode)
    assert diagnose(untimed).verdict.limits.ttft == "host"


def test_preemption_for_kv_room_limits_tpot_too() -> None:
    full = queued("kv")
    assert diagnose(full).verdict.limits.tpot == "bandwidth"
    preempted = dataclasses.replace(full, events=(*full.events, event("preempt", 5, 1)))
    assert diagnose(preempted).verdict.limits == Limits("capacity", "capacity", "capacity")


def test_a_goal_without_steps_of_its_kind_is_undetermined() -> None:
    verdict = diagnose(batch_one(), goal="ttft").verdict
    assert verdict.limits.ttft == verdict.bottleneck == "undetermined"
    assert "no prefill or mixed step was recorded" in verdict.sentence


def test_counters_of_another_phase_say_nothing_of_a_goal() -> None:
    """A kernel trace of decode alone, half idle; no model. And one with a little prefill in it."""
    trace = (*samples("trace_kernel_busy", 0.4), *samples("gpm_tensor_util", 0.7))
    decode = tuple(step(i, i, 1) for i in range(60))
    kernels = (kernel("gemv", 24),)
    alone = Capture(steps=decode, kernels=kernels, device_samples=trace)
    assert diagnose(alone).verdict.limits == Limits("undetermined", "host", "host")
    mixed = dataclasses.replace(alone, steps=(*decode, step(60, 60, 4, phase="prefill")))
    assert diagnose(mixed).verdict.limits == Limits("undetermined", "host", "host")
    no_steps = Capture(kernels=kernels, device_samples=trace)
    assert diagnose(no_steps).verdict.limits == Limits("undetermined", "host", "host")
    prompt = kernel("gemm", 3)._replace(phase="prefill")
    with_prompt = dataclasses.replace(mixed, kernels=(*kernels, prompt))
    assert diagnose(with_prompt).verdict.limits.ttft == "compute"  # by its own kernels


def test_the_default_headline_is_throughputs() -> None:
    default, chosen = diagnose(queued()), diagnose(queued(), goal="throughput")
    assert default.verdict == chosen.verdict
    assert (default.goal, chosen.goal) == (None, "throughput")


def test_another_goal_brings_its_own_class_confidence_chain_and_remedies() -> None:
    found = diagnose(queued(), goal="tpot")
    verdict = found.verdict
    assert verdict.bottleneck == verdict.limits.tpot == "bandwidth"
    assert verdict.sentence.startswith("For TPOT: Memory bandwidth limits the step: ")
    assert "For throughput: Requests queue at the sequence cap" in verdict.sentence
    assert verdict.between == ()
    assert {link.cause for link in verdict.chain} >= {
        "every step reads all weights and the whole KV cache"
    }
    assert any("weights" in remedy.action for remedy in found.remedies)
    assert verdict.confidence == diagnose(batch_one()).verdict.confidence


def test_the_candidates_of_another_goals_verdict_do_not_leak() -> None:
    """Throughput is undetermined between two limits; TPOT is not."""
    capture = queued()
    words = ("kv", "seqs", "tokens")
    steps = tuple(s._replace(blocked_by=words[s.id % 3]) for s in capture.steps)
    mixed = dataclasses.replace(capture, steps=steps)
    assert len(diagnose(mixed).verdict.between) == 2
    tpot = diagnose(mixed, goal="tpot").verdict
    assert (tpot.bottleneck, tpot.between) == ("bandwidth", ())


def test_an_unknown_goal_is_refused() -> None:
    with pytest.raises(ValueError, match="'latency' is none of ttft, tpot, throughput"):
        diagnose(batch_one(), goal="latency")
