"""The derivation of a verdict: every number found elsewhere or worked out again by hand."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from capture_builders import MS, ON_GPU, decodes, request, samples
from derivation import faults

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.explain.result import Term
from stallscope.analyzers.explain.terms import compared
from stallscope.profiler.capture import Capture, DeviceSample
from stallscope.profiler.evidence import BoundSide
from stallscope.profiler.spec import Subject
from stallscope.reports.json_report import render


def explained(capture: Capture, goal: str | None = None) -> dict[str, dict[str, Any]]:
    report = json.loads(render(diagnose(capture, goal=goal)))
    assert faults(report) == []
    steps = {step["id"]: step for step in report["explain"]}
    assert len(steps) == len(report["explain"])
    return steps


def terms(step: dict[str, Any]) -> dict[str, float]:
    return {term["name"]: term["value"] for term in step["terms"]}


def lines(step: dict[str, Any]) -> dict[tuple[str, str | None], tuple[bool | None, float]]:
    return {
        (c["term"], c["threshold"]): (c["holds"], pytest.approx(c["distance"]))
        for c in step["comparisons"]
    }


READING = Capture(ON_GPU, steps=decodes(60, device_ns=MS, host_ns=0))


def test_a_step_that_reads_its_memory() -> None:
    # Weights 131,072 bytes, and eight linears' inputs and outputs of 64 · 4 bytes; KV of 32 tokens
    # · 512 bytes, read, and query and output; over 294,912,000 B/s, of a step of 1 ms.
    weights, kv = (131_072 + 8 * 2 * 256) / 294_912, (32 * 512 + 2 * 256) / 294_912
    steps = explained(READING)
    assert list(steps) == [
        *("rule-capacity", "rule-bandwidth", "rule-scheduling", "rule-decode-focus"),
        *("check", "front", "client", "load", "standstill", "step", "confidence"),
    ]
    step = steps["step"]
    assert step["answer"] == "decides"
    told = terms(step)
    assert told["weights"] == pytest.approx(weights)
    assert told["kv"] == pytest.approx(kv)
    assert told["bandwidth_share"] == pytest.approx(weights + kv)
    assert lines(step)["bandwidth_share", "limit_share"] == (True, told["bandwidth_share"] - 0.4)
    assert lines(step)["unexplained", "model_error"][0] is True
    # Estimated (0.4), no runner-up, every window alike, half of the step unexplained.
    by_hand = 0.4 * (1 - told["unexplained"] / 2)
    assert terms(steps["confidence"])["weight"] == pytest.approx(by_hand)


def test_every_number_of_a_rule_is_held_against_its_line() -> None:
    """Each measure of the document's rules is compared, by whatever name it speaks for one."""
    for capture in (
        READING,
        dataclasses.replace(READING, device_samples=samples("nvml_gpu_util", 1)),
    ):
        for name, step in explained(capture).items():
            if name.startswith("rule-"):
                assert {c["term"] for c in step["comparisons"]} == set(terms(step)), name


def test_a_queue_at_the_sequence_cap() -> None:
    """Four run for 40 ms a wave of 8: the second four wait half of their time."""
    subject = dataclasses.replace(ON_GPU, max_num_seqs=4)
    rows = decodes(
        80, waiting=4, running=4, decode_requests=4, kv_used_bytes=100, kv_total_bytes=1_000_000
    )
    rows = tuple(s._replace(waiting=4 if s.id < 40 else 0) for s in rows)
    asked = [
        request(i, 0, 0 if i < 4 else 40, 1 if i < 4 else 41, 40 + 40 * (i // 4)) for i in range(8)
    ]
    steps = explained(Capture(subject, steps=rows, requests=tuple(asked)))
    # 4 · 40 ms waited of 4 · 40 + 4 · 80 ms in the system.
    assert terms(steps["load"])["queue_wait_share"] == pytest.approx(160 / 480)
    assert lines(steps["load"])["held_share", "queue_wait_share"][0] is True
    queue = steps["queue"]
    assert (queue["answer"], terms(queue)) == (
        "decides",
        {"limit_seqs": 1, "held_by_scheduling": 1},
    )
    assert lines(queue) == {("held_by_scheduling", None): (True, 0.5)}
    assert "step" not in steps


def test_clocks_are_told_where_they_were_sampled() -> None:
    """A memory clock at 0.6 stretches 0.5 of the step to 0.83 of it."""
    clock = [("sm_clock_hz", 1.5e9), ("sm_clock_max_hz", 1.5e9)]
    clock += [("memory_clock_hz", 0.6e9), ("memory_clock_max_hz", 1.0e9)]
    seen = tuple(DeviceSample(0, "gpu0", name, value, "Hz") for name, value in clock)
    steps = explained(dataclasses.replace(READING, device_samples=seen))
    told = terms(steps["clocks"])
    assert told["memory_clock_share"] == pytest.approx(0.6)
    assert told["explained_at_observed"] == pytest.approx(told["explained_at_nominal"] / 0.6)
    assert steps["clocks"]["answer"] == "decides"
    assert steps["step"]["answer"] == "passes on"


def test_what_was_offered_and_what_arrived() -> None:
    """Two of eight clients in flight all the time, nothing waiting: a quarter is under a half."""
    subject = Subject(concurrency=8, engine="vllm")
    asked = tuple(request(i, 0, 0, 1, 100) for i in range(2))
    steps = explained(Capture(subject, steps=decodes(100, waiting=0), requests=asked))
    told = terms(steps["client"])
    assert (told["in_flight"], told["in_flight_offered"]) == (pytest.approx(2), 8)
    assert told["arrived_share"] == pytest.approx(0.25)
    assert lines(steps["client"])["arrived_share", "client_share"] == (True, -0.25)
    assert steps["client"]["answer"] == "decides"
    assert "load" not in steps


def test_a_goal_of_its_own_is_the_last_step() -> None:
    """Steps that read memory decide; of prefill, for TTFT, none was recorded."""
    steps = explained(READING, goal="ttft")
    assert steps["step"]["answer"] == "decides"
    assert steps["goal"]["answer"] == "decides the headline"
    assert "undetermined: no prefill or mixed step was recorded" in steps["goal"]["because"]


@pytest.mark.parametrize(
    ("side", "sign", "limit", "holds"),
    [
        (None, "≥", 0.5, True),
        (None, ">", 0.5, False),
        (None, "<", 0.5, False),
        (None, "≤", 0.5, True),
        ("lower", "≥", 0.4, True),  # at least 0.5 is above 0.4 …
        ("lower", "≥", 0.6, None),  # … and may be above 0.6
        ("lower", "<", 0.4, False),
        ("lower", "<", 0.6, None),
        ("upper", "≥", 0.4, None),
        ("upper", "≥", 0.6, False),
        ("upper", "<", 0.6, True),
        ("upper", "<", 0.4, None),
    ],
)
def test_a_bound_settles_one_way(
    side: BoundSide | None, sign: str, limit: float, holds: bool | None
) -> None:
    term = Term("x", 0.5, "fraction", "bound" if side else "measured", "", side)
    found = compared(term, sign, limit)
    assert found.holds is holds
    assert found.distance == pytest.approx(0.5 - limit)
