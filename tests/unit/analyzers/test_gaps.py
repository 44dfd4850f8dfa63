"""What could not be seen, why, and the cheapest way to see it."""

from __future__ import annotations

import dataclasses

from capture_builders import (
    MS,
    ON_CPU,
    ON_GPU,
    batch_one,
    decodes,
    gauges,
    kernel,
    request,
    samples,
)

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.gaps import where_to_look
from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import Subject


def missing(capture: Capture) -> dict[str, tuple[str, str]]:
    return {n.what: (n.reason, n.how) for n in diagnose(capture).not_observable}


def test_a_cpu_is_not_told_to_use_gpu_tools() -> None:
    found = missing(Capture(subject=ON_CPU, steps=decodes(3)))
    assert all("nsys" not in how and "ncu" not in how for _, how in found.values())
    assert "launch gaps inside the forward call" not in found
    assert where_to_look(Capture(subject=ON_CPU)) == "profile a few steps with torch.profiler"


def test_launch_gaps_need_a_kernel_trace() -> None:
    capture = Capture(subject=ON_GPU, steps=decodes(3))
    assert "launch gaps inside the forward call" in missing(capture)
    # Kernels alone do not say when none ran.
    kernels = dataclasses.replace(capture, kernels=(kernel("gemm", 1),))
    assert "launch gaps inside the forward call" in missing(kernels)
    traced = dataclasses.replace(kernels, device_samples=samples("trace_kernel_busy", 0.4))
    assert "launch gaps inside the forward call" not in missing(traced)
    assert "host time inside a step" not in missing(traced)
    assert "ncu" in where_to_look(traced)
    assert "nsys" not in where_to_look(traced)


def test_transfers_that_nothing_recorded() -> None:
    copies, links = "transfer over the host link", "communication between devices"
    capture = Capture(subject=ON_GPU, steps=decodes(3))
    assert copies in missing(capture)
    assert links not in missing(capture)
    assert links in missing(
        dataclasses.replace(capture, subject=dataclasses.replace(ON_GPU, num_devices=4))
    )
    own = dataclasses.replace(ON_GPU, engine="builtin")
    assert copies not in missing(dataclasses.replace(capture, subject=own))
    assert copies not in missing(batch_one())
    kernels = (kernel("gemm", 1), kernel("communication", 1, exposed_ms=0.5))
    traced = dataclasses.replace(
        capture,
        subject=dataclasses.replace(ON_GPU, num_devices=4),
        kernels=kernels,
        device_samples=samples("trace_kernel_busy", 0.4),
    )
    assert {copies, links}.isdisjoint(missing(traced))


def test_host_time_needs_the_forward_call_marked_in_one_step_at_least() -> None:
    assert "host time inside a step" in missing(Capture(steps=decodes(3)))
    assert "host time inside a step" not in missing(batch_one())


def test_the_budget_says_what_to_give() -> None:
    what = "the step budget"
    assert missing(Capture(steps=decodes(1)))[what] == (
        "neither the model nor the device is known",
        "add --gpu and --model to judge",
    )
    no_gpu = Subject(model=ON_GPU.model, dtype="fp16")
    assert missing(Capture(subject=no_gpu, steps=decodes(1)))[what][1] == "add --gpu NAME"
    no_context = Capture(subject=ON_GPU, steps=decodes(1, context_tokens=None))
    assert missing(no_context)[what] == (
        "steps do not say how much context they read",
        "record context_tokens",
    )
    no_step = Capture(subject=ON_GPU, requests=(request(0, 0, 0, 1, 2),))
    assert missing(no_step)[what][0] == "no step was recorded"
    assert what not in missing(batch_one())


def test_the_scheduling_rule_asks_for_what_it_lacks() -> None:
    what = "the scheduling rule"
    no_queue = missing(Capture(subject=ON_GPU, steps=decodes(1)))[what]
    assert no_queue == (
        "neither requests nor queue gauges were recorded",
        "record requests, or the engine's waiting and running",
    )
    queue = gauges(waiting=(1, 1), running=(1, 1))
    no_use = missing(Capture(engine_samples=queue))[what]
    assert "sample SM throughput" in no_use[1]


def test_a_rule_that_was_observed_is_not_listed() -> None:
    rows = (
        *samples("ncu_sm_throughput", 0.2),
        *samples("ncu_dram_throughput", 0.9),
    )
    capture = Capture(
        subject=ON_GPU,
        steps=decodes(2, device_ns=MS),
        requests=(request(0, 0, 0, 1, 2),),
        device_samples=rows,
    )
    assert not any(what.endswith("rule") for what in missing(capture))
