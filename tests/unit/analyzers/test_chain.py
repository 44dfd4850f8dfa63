"""The chain: the first binding cause, and its effects under it."""

from __future__ import annotations

import dataclasses

import pytest

from stallscope.analyzers.chain import build_chain
from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.load.demand import UNKNOWN_DEMAND
from stallscope.analyzers.load.preemption import Preemption
from stallscope.analyzers.load.queue_limits import Admission
from stallscope.analyzers.measures import measure
from stallscope.analyzers.result import BudgetPart, PhaseBudget
from stallscope.analyzers.step.limit import Decision

MEASURES = tuple(
    measure(name, value, "measured", "a test")
    for name, value in {
        "preemptions": 3.0,
        "recomputed_tokens": 40.0,
        "kv_used_peak": 0.99,
        "limit_kv": 1.0,
        "queue_wait_share": 0.4,
        "waiting_mean": 2.0,
        "host_per_step": 0.01,
    }.items()
)


def judgement(
    bottleneck: str, limit: str = "", *, queues: bool = False, computes_in: str = "prefill"
) -> Judgement:
    admission = Admission({"kv": 1.0}, 1.0, "measured", "a test") if queues else None
    decision = Decision(bottleneck, 1.0, 0.0, None, 0.0, 1.0, "a reason", limit=limit or None)
    load = "overloaded" if queues else "served"
    arithmetic = BudgetPart("compute", 0.6, 0.6, "estimated", "roofline")
    phase = PhaseBudget(computes_in, 1, 1.0, 1.0, 1.0, (arithmetic,))
    return Judgement(load, decision, UNKNOWN_DEMAND, admission, (phase,))


def test_a_full_pool_preempts_prefills_again_and_queues() -> None:
    chain = build_chain(judgement("capacity", "kv", queues=True), MEASURES)
    assert [(link.cause, link.effect) for link in chain] == [
        ("KV pool full", "preemption"),
        ("preemption", "prompt and output prefilled again"),
        ("KV pool full", "requests queue for KV room"),
        ("requests queue for KV room", "TTFT grows"),
    ]
    assert chain[0].evidence == ("kv_used_peak", "preemptions")
    assert chain[2].evidence == ("limit_kv", "queue_wait_share")


def test_without_preemption_only_the_queue_follows() -> None:
    quiet = tuple(m for m in MEASURES if m.name != "preemptions")
    chain = build_chain(judgement("capacity", "kv", queues=True), quiet)
    assert [link.effect for link in chain] == ["requests queue for KV room", "TTFT grows"]


def test_the_cap_has_kv_to_spare_only_where_the_pool_was_seen_and_never_full() -> None:
    def cause(peak: float | None) -> str:
        pool = () if peak is None else (measure("kv_used_peak", peak, "measured", "a test"),)
        return build_chain(judgement("scheduling", "seqs", queues=True), pool)[0].cause

    assert cause(0.94) == "sequence cap (max_num_seqs) reached with KV to spare"
    assert cause(0.95) == cause(None) == "sequence cap (max_num_seqs) reached"


def test_preemption_that_decides_ends_in_lost_tokens_and_in_the_queue_behind_it() -> None:
    lost = dataclasses.replace(
        judgement("capacity", "kv"), preemption=Preemption(0.3, 0.1), admission=None
    )
    effects = [link.effect for link in build_chain(lost, MEASURES)]
    again = "prompt and output prefilled again"
    assert effects == ["preemption", again, "fewer new tokens per second"]
    queues = dataclasses.replace(lost, admission=Admission({"tokens": 1.0}, 1.0, "derived", "x"))
    *_, queue, last = build_chain(queues, MEASURES)
    assert (queue.cause, queue.effect) == (again, "requests queue")
    assert (last.cause, last.effect) == ("requests queue", "TTFT grows")


@pytest.mark.parametrize(
    ("bottleneck", "limit", "queues", "first_cause"),
    [
        ("scheduling", "seqs", True, "sequence cap (max_num_seqs) reached"),
        ("scheduling", "stalled", True, "the engine makes no progress under no cap"),
        ("scheduling", "batch", True, "a static batch takes nobody in until its last request ends"),
        ("bandwidth", "", False, "every step reads all weights and the whole KV cache"),
        (
            "scheduling",
            "imbalance",
            True,
            "one engine gets more requests than one with room",
        ),
        (
            "scheduling",
            "deferred",
            True,
            "requests lack something other than room: an adapter, KV from elsewhere, a grammar",
        ),
        ("compute", "prefill", True, "prompts bring many tokens per step"),
        ("compute", "tokens", True, "prompts bring many tokens per step"),
        ("compute", "", False, "prompts bring many tokens per step"),
        ("host", "", False, "work on the host between forward calls"),
        (
            "host",
            "front",
            True,
            "requests are prepared more slowly than the scheduler could take them",
        ),
    ],
)
def test_each_class_starts_at_its_cause(
    bottleneck: str, limit: str, queues: bool, first_cause: str
) -> None:
    chain = build_chain(judgement(bottleneck, limit, queues=queues), MEASURES)
    assert chain[0].cause == first_cause
    says_queue = any("queue" in link.effect for link in chain)
    assert says_queue is queues


@pytest.mark.parametrize("bottleneck", ["none", "undetermined", "telemetry"])
def test_no_chain_where_nothing_binds(bottleneck: str) -> None:
    assert build_chain(judgement(bottleneck), MEASURES) == ()


def test_evidence_names_only_what_was_measured() -> None:
    chain = build_chain(judgement("bandwidth"), MEASURES)
    assert [link.evidence for link in chain] == [(), ()]


@pytest.mark.parametrize(
    ("phase", "cause"),
    [
        ("prefill", "prompts bring many tokens per step"),
        ("mixed", "prompts bring many tokens per step"),
        ("decode", "a large batch brings many tokens per step"),
    ],
)
def test_arithmetic_comes_from_the_phase_that_holds_it(phase: str, cause: str) -> None:
    seen = tuple(
        measure(name, 0.5, "bound", "a test")
        for name in ("mfu_prefill", "intensity_prefill", "mfu_decode", "intensity_decode")
    )
    (link,) = build_chain(judgement("compute", computes_in=phase), seen)
    side = "decode" if phase == "decode" else "prefill"
    assert (link.cause, link.evidence) == (cause, (f"intensity_{side}", f"mfu_{side}"))
    # What queues for the token budget are prompts, whatever the steps did.
    queued = build_chain(judgement("compute", "tokens", queues=True, computes_in=phase), seen)
    assert queued[0].cause == "prompts bring many tokens per step"


def test_a_client_that_sends_less_lets_the_server_wait() -> None:
    seen = (measure("in_flight", 1.0, "derived", "a test"), *MEASURES)
    (link,) = build_chain(judgement("client"), seen)
    assert (link.cause, link.effect) == (
        "the client sends less than it claims",
        "the server waits for its client",
    )
    assert link.evidence == ("in_flight",)
