"""Captures with pieces missing: no exception, no 0 for what is not known, a sensible sentence."""

from __future__ import annotations

import dataclasses

import pytest
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
    step,
)

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import RuleResult
from stallscope.analyzers.rules import by_id
from stallscope.profiler.capture import Capture, Cut, DeviceSample
from stallscope.profiler.spec import Subject

TOLD_APART = (
    "Undetermined between bandwidth, compute and host: "
    "without a step budget these cannot be told apart: "
)
QUEUE = (request(0, 0, 0, 5, 100), request(1, 0, 60, 65, 100), request(2, 0, 80, 85, 100))


@pytest.mark.parametrize(
    ("capture", "sentence"),
    [
        (
            Capture(steps=decodes(30)),
            TOLD_APART
            + "neither the model nor the device is known (add --gpu and --model to judge).",
        ),
        (
            Capture(subject=Subject(model=ON_GPU.model, dtype="fp32"), steps=decodes(30)),
            TOLD_APART + "the device is not known (add --gpu NAME).",
        ),
        (
            Capture(subject=Subject(model=ON_GPU.model, device=ON_GPU.device), steps=decodes(30)),
            TOLD_APART + "the weights' dtype is not known (add --dtype).",
        ),
        (
            Capture(subject=dataclasses.replace(ON_GPU, dtype="bf16"), steps=decodes(30)),
            TOLD_APART
            + "toy gpu has no known peak for bf16 "
            + "(give it as peak_flops.bf16 in the file of --gpu-file).",
        ),
        (
            Capture(subject=ON_GPU, steps=decodes(30, context_tokens=None)),
            TOLD_APART + "steps do not say how much context they read (record context_tokens).",
        ),
        (
            Capture(subject=ON_GPU, requests=(request(0, 0, 0, 5, 100),)),
            TOLD_APART + "no step was recorded (record steps, or trace a few with nsys).",
        ),
        (
            Capture(requests=QUEUE),
            "Undetermined between capacity and scheduling: requests queue, but nothing recorded "
            "tells at which limit.",
        ),
        (
            Capture(requests=QUEUE, steps=decodes(100)),
            "Undetermined between capacity and scheduling: requests queue, but nothing recorded "
            "tells at which limit.",
        ),
        (
            Capture(engine_samples=gauges(waiting=(0,) * 4, running=(0,) * 4)),
            "Nothing limits this run: nothing was in flight 100 % of the time and nothing waited.",
        ),
        (
            Capture(
                subject=Subject(concurrency=8),
                engine_samples=gauges(waiting=(0,) * 4, running=(2,) * 4),
            ),
            "The client does not send what it says it offers: 2.0 of 8 clients had a request in "
            "flight on average, and nothing waited.",
        ),
        (
            Capture(requests=(request(0, 5, None, None, None, status="waiting"),)),
            TOLD_APART
            + "neither the model nor the device is known (add --gpu and --model to judge).",
        ),
    ],
)
def test_sentences(capture: Capture, sentence: str) -> None:
    assert diagnose(capture).verdict.sentence == sentence


def test_unknown_host_time_is_not_a_host_time_of_zero() -> None:
    found = diagnose(Capture(subject=ON_GPU, steps=decodes(30)))
    assert "host_per_step" not in {m.name for m in found.measures}
    assert "host time inside a step" in {n.what for n in found.not_observable}
    host = next(p for p in found.phases[-1].budget if p.part == "host")
    assert (host.provenance, host.side) == ("bound", "lower")


def test_gaps_bound_the_host_time_from_below() -> None:
    """Steps of 10 ms every 25: 99 gaps of 15 ms, and whatever the steps hold."""
    steps = tuple(step(i, 25 * i, 10) for i in range(100))
    found = diagnose(Capture(subject=ON_GPU, steps=steps))
    host = next(p for p in found.phases[-1].budget if p.part == "host")
    assert (host.time_s, host.side) == (pytest.approx(99 * 0.015), "lower")
    measure = next(m for m in found.measures if m.name == "host_per_step")
    assert (measure.value, measure.side) == (pytest.approx(0.01485), "lower")
    assert found.verdict.bottleneck == "host"


def test_the_length_of_samples_without_rows() -> None:
    sampled = Capture(device_samples=samples("gpm_dram_util", 0.8, 0.8, 0.8))
    assert diagnose(sampled).capture.duration_s == pytest.approx(0.002)
    kernels = Capture(kernels=(kernel("gemv", 5),))
    assert diagnose(kernels).capture.duration_s is None
    assert diagnose(batch_one()).capture.duration_s == pytest.approx(0.06)


def test_no_model_is_no_speed_at_these_shapes() -> None:
    busy = (*samples("gpm_dram_util", 0.7), *samples("gpm_tensor_util", 0.1))
    found = diagnose(Capture(device_samples=busy))
    assert found.verdict.bottleneck == "bandwidth"
    assert found.document.differs_because == (
        "the bandwidth rule is not met (DRAM 0.700, not above 0.80), yet the counters and kernels "
        "that were seen point to reading memory"
    )


def test_no_failed_allocation_can_be_claimed_of_a_run_that_was_cut() -> None:
    full = (*samples("memory_used_bytes", 97), *samples("memory_total_bytes", 100))
    half = (*samples("memory_used_bytes", 50), *samples("memory_total_bytes", 100))

    def rule(rows: tuple[DeviceSample, ...], cut: Cut | None) -> RuleResult:
        capture = Capture(subject=ON_GPU, steps=decodes(60), device_samples=rows, cut=cut)
        return by_id(diagnose(capture).rules, "capacity")

    cut = Cut(60 * MS, "cut at 0.1 s")
    assert rule(full, cut).status == "not observable"
    assert "killed for memory" in rule(full, cut).reason
    assert rule(full, None).status == "not met"
    assert rule(half, cut).status == "not met"  # low memory settles it


def test_unknown_load_is_not_a_load_of_zero() -> None:
    found = diagnose(batch_one())
    names = {m.name for m in found.measures}
    assert names.isdisjoint({"queue_wait_share", "idle_share", "in_flight", "waiting_mean"})
    assert found.latency == {}
    rates = dataclasses.astuple(found.throughput)
    assert rates == (None, None, None)


def test_an_unknown_context_leaves_mfu_mbu_and_the_budget_out() -> None:
    found = diagnose(Capture(subject=ON_GPU, steps=decodes(30, context_tokens=None)))
    names = {m.name for m in found.measures}
    assert not {n for n in names if n.startswith(("mfu", "mbu", "intensity"))}
    assert found.phases[0].budget == ()
    assert found.phases[0].time_s == pytest.approx(0.03)


def test_steps_of_no_duration() -> None:
    """A clock that stood still: no division by it, and no utilisation of anything."""
    found = diagnose(Capture(subject=ON_CPU, steps=decodes(30, 0.0)))
    assert found.verdict.bottleneck == "undetermined"
    assert not {m.name for m in found.measures if m.name.startswith(("mfu", "mbu"))}


def test_a_run_of_which_only_the_queue_was_seen_when_it_was_cut() -> None:
    """Nobody was ever admitted: that is a queue, not an idle engine."""
    rows = tuple(request(i, 10 * i, None, None, None, status="waiting") for i in range(8))
    found = diagnose(Capture(requests=rows, cut=Cut(70 * MS, "cut at 0.1 s: the run did not end")))
    assert found.verdict.load == "overloaded"
    assert found.verdict.bottleneck == "undetermined"
