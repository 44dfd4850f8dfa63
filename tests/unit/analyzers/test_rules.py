"""The document's rules: met just past each line, not met just under, blind where nothing tells."""

from __future__ import annotations

from typing import Any

import pytest

from stallscope.analyzers.rules import (
    RuleEvidence,
    bandwidth_rule,
    by_id,
    capacity_rule,
    decode_rule,
    evaluate,
    scheduling_rule,
)
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.evidence import BoundSide, Measure

T = Thresholds()
WHY = {
    "memory": "no memory samples",
    "allocation_failures": "nothing tells of failures",
    "sm": "no SM",
    "dram": "no DRAM",
    "queue": "no queue",
    "utilisation": "no utilisation",
    "decode_requests": "no requests",
    "decode_engine": "no steps",
}


def evidence(**known: Any) -> RuleEvidence:
    nothing: dict[str, Any] = {
        "memory": None,
        "allocation_failures": None,
        "memory_note": None,
        "sm": (),
        "dram": (),
        "dram_is_decode": False,
        "queue_share": None,
        "utilisation": (),
        "decode_requests": None,
        "decode_engine": (),
        "why": WHY,
    }
    return RuleEvidence(**{**nothing, **known})


def value(name: str, number: float) -> Measure:
    return Measure(name, number, "fraction", "measured", "a test")


def bound(name: str, number: float, side: BoundSide) -> Measure:
    return Measure(name, number, "fraction", "bound", "a test", side)


@pytest.mark.parametrize(
    ("memory", "failures", "status"),
    [
        (0.95, 1, "met"),
        (0.949, 1, "not met"),
        (0.95, 0, "not met"),
        (None, 0, "not met"),  # no failure settles it, whatever the memory
        (0.3, None, "not met"),  # low memory settles it, whatever failed
        (None, 1, "not observable"),
        (0.95, None, "not observable"),
        (None, None, "not observable"),
    ],
)
def test_capacity_needs_memory_near_its_limit_and_a_failure(
    memory: float | None, failures: int | None, status: str
) -> None:
    found = evidence(
        memory=None if memory is None else value("memory_used", memory),
        allocation_failures=None if failures is None else value("allocation_failures", failures),
    )
    assert capacity_rule(found, T).status == status


def test_capacity_names_what_it_lacks_and_the_preallocated_pool() -> None:
    full = evidence(memory=value("memory_used", 0.97), memory_note="pre-allocated by the engine")
    assert capacity_rule(full, T).reason == "nothing tells of failures"
    assert capacity_rule(evidence(), T).reason == "no memory samples"
    none_failed = evidence(
        memory=value("memory_used", 0.97),
        allocation_failures=value("allocation_failures", 0),
        memory_note="pre-allocated by the engine",
    )
    reason = "memory 0.970 (pre-allocated by the engine), but no allocation failed"
    assert capacity_rule(none_failed, T).reason == reason


@pytest.mark.parametrize(
    ("sm", "dram", "status"),
    [
        (0.299, 0.801, "met"),
        (0.30, 0.801, "not met"),
        (0.299, 0.80, "not met"),
        (None, 0.80, "not met"),
        (0.30, None, "not met"),
        (None, 0.801, "not observable"),
        (0.299, None, "not observable"),
        (None, None, "not observable"),
    ],
)
def test_bandwidth_by_values(sm: float | None, dram: float | None, status: str) -> None:
    found = evidence(
        sm=() if sm is None else (value("sm_throughput", sm),),
        dram=() if dram is None else (value("dram_throughput", dram),),
    )
    assert bandwidth_rule(found, T).status == status


def test_bandwidth_met_by_an_upper_bound_of_sm() -> None:
    found = evidence(
        sm=(bound("sm_throughput", 0.25, "upper"),), dram=(value("dram_throughput", 0.84),)
    )
    rule = bandwidth_rule(found, T)
    assert rule.status == "met"
    assert rule.reason == "by bounds: SM ≤ 0.250, below 0.30; DRAM 0.840, above 0.80"


def test_bandwidth_not_met_by_a_lower_bound_of_sm() -> None:
    found = evidence(
        sm=(bound("sm_throughput", 0.30, "lower"),), dram=(value("dram_throughput", 0.84),)
    )
    rule = bandwidth_rule(found, T)
    assert (rule.status, rule.reason) == ("not met", "SM ≥ 0.300, not below 0.30")


def test_bandwidth_not_observable_between_bounds() -> None:
    """SM active 0.97 and tensor pipes 0.05 leave SM throughput anywhere between."""
    found = evidence(
        sm=(bound("sm_throughput", 0.05, "lower"), bound("sm_throughput", 0.97, "upper")),
        dram=(value("dram_throughput", 0.84),),
    )
    assert (bandwidth_rule(found, T).status, bandwidth_rule(found, T).reason) == (
        "not observable",
        "no SM",
    )


def test_bandwidth_by_mbu_above_the_line() -> None:
    mbu = bound("mbu", 0.801, "lower")
    met = evidence(sm=(value("sm_throughput", 0.2),), dram=(mbu,))
    assert bandwidth_rule(met, T).status == "met"
    assert bandwidth_rule(evidence(dram=(mbu,)), T).status == "not observable"


@pytest.mark.parametrize(
    ("mbu", "is_decode", "status"),
    [
        (0.64, True, "not met"),  # 0.64 · 1.25 = 0.80, not above the line
        (0.641, True, "not observable"),
        (0.64, False, "not observable"),  # other steps move more than weights and KV
    ],
)
def test_bandwidth_by_the_decode_traffic_estimate(mbu: float, is_decode: bool, status: str) -> None:
    found = evidence(
        sm=(value("sm_throughput", 0.2),),
        dram=(bound("mbu", mbu, "lower"),),
        dram_is_decode=is_decode,
    )
    assert bandwidth_rule(found, T).status == status


@pytest.mark.parametrize("sm", [0.2, 0.4, None])
def test_more_than_all_bytes_prove_nothing(sm: float | None) -> None:
    """An MBU of 2.49 is a wrong count of bytes, not a DRAM above 80 %."""
    found = evidence(
        sm=() if sm is None else (value("sm_throughput", sm),),
        dram=(bound("mbu", 2.49, "lower"),),
        dram_is_decode=True,
    )
    assert bandwidth_rule(found, T).status == ("not met" if sm == 0.4 else "not observable")


def test_more_than_all_flops_prove_nothing() -> None:
    impossible = bound("mfu", 1.3, "lower")
    dram = (value("dram_throughput", 0.9),)
    assert bandwidth_rule(evidence(sm=(impossible,), dram=dram), T).status == "not observable"
    queue = value("queue_wait_share", 0.5)
    busy = bound("gpu_busy", 0.6, "upper")
    found = evidence(queue_share=queue, utilisation=(impossible, busy))
    assert scheduling_rule(found, T).status == "met"


def test_a_counter_goes_before_the_estimate() -> None:
    found = evidence(
        sm=(value("sm_throughput", 0.2),),
        dram=(value("dram_throughput", 0.9), bound("mbu", 0.5, "lower")),
        dram_is_decode=True,
    )
    assert bandwidth_rule(found, T).status == "met"


@pytest.mark.parametrize(
    ("queue", "used", "status"),
    [
        (0.20, 0.70, "met"),
        (0.199, 0.70, "not met"),
        (0.20, 0.701, "not met"),
        (0.199, None, "not met"),
        (None, 0.701, "not met"),
        (None, 0.70, "not observable"),
        (0.20, None, "not observable"),
    ],
)
def test_scheduling_by_values(queue: float | None, used: float | None, status: str) -> None:
    found = evidence(
        queue_share=None if queue is None else value("queue_wait_share", queue),
        utilisation=() if used is None else (value("sm_throughput", used),),
    )
    assert scheduling_rule(found, T).status == status


@pytest.mark.parametrize(
    ("utilisation", "status"),
    [
        (bound("gpu_busy", 0.70, "upper"), "met"),
        (bound("gpu_busy", 0.71, "upper"), "not observable"),  # busy never proves "high"
        (bound("mfu", 0.71, "lower"), "not met"),
        (bound("mfu", 0.70, "lower"), "not observable"),
    ],
)
def test_scheduling_by_bounds(utilisation: Measure, status: str) -> None:
    found = evidence(queue_share=value("queue_wait_share", 0.5), utilisation=(utilisation,))
    assert scheduling_rule(found, T).status == status


@pytest.mark.parametrize(
    ("requests", "engine", "status"),
    [
        (0.901, 0.901, "met"),
        (0.90, 0.90, "not met"),
        (0.95, 0.85, "not met"),
        (None, 0.95, "not observable"),
        (0.95, None, "not observable"),
    ],
)
def test_decode_focus_needs_both_views(
    requests: float | None, engine: float | None, status: str
) -> None:
    found = evidence(
        decode_requests=None if requests is None else value("decode_share_requests", requests),
        decode_engine=() if engine is None else (value("decode_share_engine", engine),),
    )
    assert decode_rule(found, T).status == status


@pytest.mark.parametrize(
    ("requests", "low", "high", "status"),
    [
        (0.95, 0.91, 0.99, "met"),  # whatever mixed steps are
        (0.95, 0.10, 0.90, "not met"),
        (0.95, 0.10, 0.91, "not observable"),
        (0.85, 0.10, 0.91, "not met"),  # both must be above
    ],
)
def test_decode_focus_by_bounds_where_no_model_splits_mixed_steps(
    requests: float, low: float, high: float, status: str
) -> None:
    engine = (
        bound("decode_share_engine", low, "lower"),
        bound("decode_share_engine", high, "upper"),
    )
    found = evidence(decode_requests=value("decode_share_requests", requests), decode_engine=engine)
    rule = decode_rule(found, T)
    assert rule.status == status
    assert f"{low:.3f} to {high:.3f} of step time" in rule.reason


def test_decode_focus_tells_which_way_the_views_disagree() -> None:
    def reason(requests: float, engine: float) -> str:
        found = evidence(
            decode_requests=value("decode_share_requests", requests),
            decode_engine=(value("decode_share_engine", engine),),
        )
        return decode_rule(found, T).reason

    assert "prefill steps delay the decode of other requests" in reason(0.95, 0.85)
    assert "requests stay in prefill while the engine decodes others" in reason(0.85, 0.95)


def test_thresholds_move_the_lines_and_are_printed() -> None:
    moved = Thresholds(sm_low=0.4, dram_high=0.6, near_limit=0.5, queue_wait_share=0.1)
    found = evidence(
        memory=value("memory_used", 0.5),
        allocation_failures=value("allocation_failures", 1),
        sm=(value("sm_throughput", 0.35),),
        dram=(value("dram_throughput", 0.65),),
        queue_share=value("queue_wait_share", 0.1),
        utilisation=(value("sm_throughput", 0.35),),
    )
    rules = evaluate(found, moved)
    assert [r.status for r in rules] == ["met", "met", "met", "not observable"]
    assert [r.id for r in rules] == ["capacity", "bandwidth", "scheduling", "decode-focus"]
    assert by_id(rules, "bandwidth").text == "SM < 0.40 and DRAM > 0.60"
    assert [r.status for r in evaluate(found, T)][:3] == ["not met", "not met", "not met"]
