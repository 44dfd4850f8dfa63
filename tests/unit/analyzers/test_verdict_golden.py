"""Whole diagnoses of captures made by hand; in two of them the rules and the verdict differ."""

from __future__ import annotations

import dataclasses
import json
from itertools import pairwise

import pytest
from capture_builders import (
    MS,
    ON_CPU,
    ON_GPU,
    batch_one,
    decodes,
    event,
    kernel,
    request,
    samples,
    step,
    timed_linears,
)

from stallscope.analyzers.classes import CLASSES, LOADS, PARTS
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Diagnosis
from stallscope.analyzers.rules import by_id
from stallscope.profiler.capture import Capture
from stallscope.reports.json_report import render


def pool_full() -> Capture:
    """100 ms: two requests run, two wait for 90 ms; one was preempted for 20 ms; no OOM."""
    rows = (
        request(0, 0, 0, 1, 100, preemptions=1, preempted_ns=20 * MS),
        request(1, 0, 0, 1, 100, preemptions=0),
        request(2, 0, 90, 91, 100, preemptions=0),
        request(3, 0, 90, 91, 100, preemptions=0),
    )
    pool = {"kv_used_bytes": 998, "kv_total_bytes": 1000}
    full = decodes(90, waiting=2, running=2, blocked_by="kv", **pool)
    steps = (*full, *(step(i, i, 1, waiting=0, running=4, **pool) for i in range(90, 100)))
    memory = (*samples("memory_used_bytes", 970), *samples("memory_total_bytes", 1000))
    return Capture(
        subject=ON_GPU,
        steps=steps,
        requests=rows,
        events=(event("preempt", 30, 0, tokens=20),),
        device_samples=memory,
    )


def test_kv_full_without_out_of_memory() -> None:
    """Queued (20 + 0 + 90 + 90) of 400 request-ms: 50 %."""
    found = diagnose(pool_full())
    verdict = found.verdict
    assert (verdict.bottleneck, verdict.load) == ("capacity", "overloaded")
    assert verdict.sentence == (
        "The KV cache is full: 2.0 of 4.0 requests in flight wait on average (50 % of their time), "
        "and running requests were preempted once."
    )
    assert by_id(found.rules, "capacity").status == "not met"
    assert found.document.classes == ()
    assert found.document.differs_because == (
        "no OOM: this engine preempts instead (memory 0.970 (the KV pool is pre-allocated by the "
        "engine), but no allocation failed)"
    )
    # The queue is an effect of the full pool, and no finding beside it.
    assert [(link.cause, link.effect) for link in verdict.chain][2] == (
        "KV pool full",
        "requests queue for KV room",
    )
    assert verdict.limits.tpot == "capacity"
    assert verdict.confidence == 0.99
    assert {w.bottleneck for w in found.windows} == {"capacity"}


def test_batch_one_at_half_the_memorys_speed() -> None:
    """Bandwidth by the linears' own times, 0.857 of the step; MBU 0.5 does not meet rule 2."""
    found = diagnose(batch_one())
    verdict = found.verdict
    assert (verdict.bottleneck, verdict.load, verdict.phase) == ("bandwidth", "served", "decode")
    assert verdict.sentence == (
        "Memory bandwidth limits the step: reading weights and KV takes 86 % of step time."
    )
    rule = by_id(found.rules, "bandwidth")
    assert rule.status == "not met"
    assert [(m.name, m.provenance, m.side) for m in rule.measures] == [("mbu", "bound", "lower")]
    assert rule.measures[0].value == pytest.approx(0.5)
    assert found.document.differs_because == (
        "the bandwidth rule is not met (bytes that must move fill 0.500 of the peak; with 25 % "
        "more traffic than that, 0.625 ≤ 0.80 (estimated)), yet reading weights and KV, at the "
        "speed this device reaches at these shapes, is the largest known part of the step"
    )
    parts = {p.part: p.share for p in found.phases[-1].budget}
    assert parts["weights"] == pytest.approx(0.8)
    assert parts["kv"] == pytest.approx(16_896 / 294_912)  # 0.0573 ms of 1 ms
    assert parts["unexplained"] == pytest.approx(0.2 - 16_896 / 294_912)


def test_queue_at_the_sequence_cap() -> None:
    rows = tuple(request(i, 0, 20 * i, 20 * i + 1, 20 * i + 20) for i in range(8))
    steps = decodes(
        160, waiting=3, running=1, blocked_by="seqs", kv_used_bytes=10, kv_total_bytes=100
    )
    capture = Capture(subject=ON_CPU, events=timed_linears(), requests=rows, steps=steps)
    found = diagnose(capture)
    assert found.verdict.bottleneck == "scheduling"
    assert "the scheduling rule cannot be observed here" in (found.document.differs_because or "")
    gpu = dataclasses.replace(capture, subject=ON_GPU, device_samples=samples("nsys_sm_issue", 0.2))
    agreed = diagnose(gpu)
    assert (agreed.document.classes, agreed.document.differs_because) == (("scheduling",), None)


def test_the_limit_changes_half_way() -> None:
    """The whole run's verdict is the queue's; the windows show both, and lower the confidence."""
    queueing = tuple(step(i, i, 1, waiting=1, running=1, blocked_by="kv") for i in range(100))
    served = tuple(step(i, i, 1, waiting=0, running=2) for i in range(100, 200))
    rows = (request(0, 0, 0, 1, 200), request(1, 0, 100, 101, 200))
    capture = dataclasses.replace(batch_one(), steps=queueing + served, requests=rows)
    found = diagnose(capture)
    assert found.verdict.bottleneck == "capacity"
    assert [w.bottleneck for w in found.windows] == ["capacity"] * 5 + ["bandwidth"] * 5
    # By hand: quality 1 · margin 1 · stability (0.5 + 0.5 · 0.5) = 0.75.
    assert found.verdict.grounds is not None
    assert found.verdict.grounds.weight == pytest.approx(0.75)


def test_sleep_on_the_host_is_host() -> None:
    """0.6 ms of 1.5 ms in the host, 0.5 ms of floor: 0.40 against 0.33 is too close; 0.8 is not."""
    close = decodes(60, 1.5, host_ns=600_000, device_ns=900_000)
    near = diagnose(Capture(subject=ON_GPU, steps=close)).verdict
    assert (near.bottleneck, near.between) == ("undetermined", ("host", "bandwidth"))
    slow = decodes(60, 1.7, host_ns=800_000, device_ns=900_000)
    found = diagnose(Capture(subject=ON_GPU, steps=slow)).verdict
    assert (found.bottleneck, found.next_limit) == ("host", "bandwidth")


def test_a_floor_above_the_step_is_a_model_error_and_said() -> None:
    """The linears' 0.857 ms in a step of 0.7 ms: −22 %."""
    found = diagnose(dataclasses.replace(batch_one(), steps=decodes(60, 0.7))).verdict
    assert found.bottleneck == "undetermined"
    assert found.between == ("bandwidth", "compute")
    assert "the cost model's floor is 22 % above the measured step" in found.sentence


def test_kernel_classes_without_a_model() -> None:
    capture = Capture(steps=decodes(3), kernels=(kernel("gemv", 6), kernel("gemm", 4)))
    found = diagnose(capture).verdict
    assert found.bottleneck == "bandwidth"
    assert found.confidence <= 0.6


def all_captures() -> tuple[Capture, ...]:
    return (pool_full(), batch_one(), batch_one(ON_GPU), Capture())


@pytest.mark.parametrize("capture", all_captures())
@pytest.mark.parametrize("goal", [None, "ttft", "tpot"])
def test_the_contract_of_the_json_report(capture: Capture, goal: str | None) -> None:
    found = diagnose(capture, goal=goal)
    report = json.loads(render(found))
    verdict = report["verdict"]
    assert verdict["class"] in CLASSES
    assert verdict["load"] in LOADS
    assert verdict["phase"] in ("prefill", "decode", "mixed", "all")
    assert 0 <= verdict["confidence"] <= 1
    assert set(verdict["limits"]) == {"ttft", "tpot", "throughput"}
    assert set(verdict["limits"].values()) <= set(CLASSES)
    assert verdict["next"] in (None, *CLASSES)
    names = {m["name"] for m in report["measures"]}
    assert all(set(link["evidence"]) <= names for link in verdict["chain"])
    assert [r["id"] for r in report["rules"]] == [
        "capacity",
        "bandwidth",
        "scheduling",
        "decode-focus",
    ]
    for phase in report["phases"]:
        assert [p["part"] for p in phase["budget"]] in ([], list(PARTS))
        if phase["budget"]:
            assert sum(p["time_s"] for p in phase["budget"]) == pytest.approx(phase["time_s"])
    _check_windows(found)


def _check_windows(found: Diagnosis) -> None:
    assert all(a.to_s == pytest.approx(b.from_s) for a, b in pairwise(found.windows))
