"""The graph of causes: whole, without circles, and walked only where the evidence is."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import ON_GPU, decodes
from test_chain import judgement

from stallscope.analyzers.chain import build_chain
from stallscope.analyzers.coupling.edges import EDGES, Condition, Edge
from stallscope.analyzers.coupling.facts import facts_of
from stallscope.analyzers.coupling.nodes import NODES
from stallscope.analyzers.coupling.walk import effects, first_causes, holds
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.measures import MEASURES, measure
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure
from stallscope.profiler.model_parts import Latent
from stallscope.profiler.spec import ModelSpec

CONDITIONAL = [edge for edge in EDGES if edge.when]
FOUND = {"queues", "no_queue", "thrash", "held_by_kv", "by_kv", "held_by_tokens"}
FOUND |= {"held_by_prefill", "only_inferred", "reserves", "intensity_of_ridge"}
FOUND |= {"waits_for_first"}


def seen(**values: float) -> tuple[Measure, ...]:
    return tuple(measure(name, value, "measured", "a test") for name, value in values.items())


def causes(**values: float) -> list[tuple[str, str]]:
    chain = build_chain(judgement("capacity", "kv", queues=True), seen(**values))
    return [(link.cause, link.effect) for link in chain]


def test_every_node_is_joined_and_every_name_is_known() -> None:
    assert {n for edge in EDGES for n in (edge.cause, edge.effect)} == set(NODES)
    for edge in EDGES:
        assert edge.source
        assert set(edge.evidence) <= set(MEASURES)
        assert {c.fact for c in edge.when} <= set(MEASURES) | FOUND


def test_no_effect_is_its_own_cause() -> None:
    for node in NODES:
        after = {edge.effect for edge in EDGES if edge.cause == node}
        reached = set(after)
        while after:
            after = {e.effect for e in EDGES if e.cause in after} - reached
            reached |= after
        assert node not in reached


def step_of(condition: Condition, by: float) -> float:
    """Move past the line by a hundredth (or before it, where `by` is negative)."""
    towards = -1.0 if condition.sign == "<" else 1.0
    return condition.value + towards * by


@pytest.mark.parametrize("edge", CONDITIONAL, ids=lambda e: f"{e.cause}→{e.effect}")
def test_an_edge_is_walked_past_its_lines_and_not_under_any_or_blind(edge: Edge) -> None:
    past = {c.fact: step_of(c, 0.01) for c in edge.when}
    assert holds(edge, past)
    for condition in edge.when:
        assert not holds(edge, {**past, condition.fact: step_of(condition, -0.01)})
        assert not holds(edge, {k: v for k, v in past.items() if k != condition.fact})


def test_the_walk_goes_back_to_what_no_other_evidence_explains() -> None:
    """a → b → c: with evidence for a → b it is a; without, what is asked for itself."""
    edges = (
        Edge("a", "b", (), (Condition("x", ">", 0.0),), "test"),
        Edge("b", "c", (), (), "test"),
        Edge("c", "d", (), (), "test"),
    )
    assert first_causes("c", {"x": 1.0}, edges) == ("a",)
    assert first_causes("c", {"x": 0.0}, edges) == ("c",)
    assert [e.effect for e in effects(("a",), {"x": 1.0}, edges)] == ["b", "c", "d"]


def test_a_latent_copied_to_every_rank_leaves_less_room() -> None:
    pairs = causes(kv_copies=8.0, kv_used_peak=1.0)
    assert pairs[0][0].startswith("devices that share each layer hold the same KV entries")
    assert pairs[1] == ("room for fewer tokens of KV cache", "KV pool full")
    assert ("requests queue for KV room", "TTFT grows") in pairs
    assert causes(kv_copies=1.0)[0][0] == "KV pool full"


def test_weights_that_fill_the_memory_come_before_the_full_pool() -> None:
    assert causes(weights_of_memory=0.51)[0][0].startswith("weights take more than half")
    assert causes(weights_of_memory=0.49)[0][0] == "KV pool full"


def test_a_full_pool_keeps_the_batch_small_below_the_ridge_only() -> None:
    small = ("KV pool full", "small batch: few FLOPs for each byte read")
    assert small in causes(intensity_decode=20.0, ridge=150.0)
    assert small not in causes(intensity_decode=160.0, ridge=150.0)
    assert small not in causes(intensity_decode=20.0)


def test_a_reservation_is_named_where_the_engine_reserves_and_the_pool_was_never_full() -> None:
    def first(peak: float, engine: str | None) -> str:
        found = judgement("capacity", "kv", queues=True)
        return build_chain(found, seen(kv_used_peak=peak), engine=engine)[0].cause

    assert first(0.6, "tensorrt-llm").startswith("admission keeps room for output that may come")
    assert first(0.6, "sglang").startswith("admission keeps room")
    assert first(0.96, "tensorrt-llm") == "KV pool full"
    assert first(0.6, "vllm") == first(0.6, None) == "KV pool full"


def test_long_prompts_stall_decode_where_the_gaps_have_a_tail() -> None:
    stall = ("decode of other requests waits for prompts", "gaps between tokens have a long tail")

    def has(tail: float) -> bool:
        chain = build_chain(judgement("compute", "tokens", queues=True), seen(itl_tail=tail))
        return any(link.cause == stall[0] and link.effect.startswith(stall[1]) for link in chain)

    assert (has(3.0), has(2.9)) == (True, False)


def test_launches_one_by_one_leave_cores_and_memory_idle() -> None:
    traced = {"trace_window": 1.0, "idle_in_launch": 0.6, "kernel_rate": 1e5}

    def effects_of(**more: float) -> list[str]:
        found = seen(**traced, **more)
        return [link.effect for link in build_chain(judgement("host"), found)]

    waits, both = "the device waits for the host", "SM throughput and memory bandwidth are both low"
    assert effects_of(sm_throughput=0.1, dram_throughput=0.2) == [waits, both]
    assert effects_of(sm_throughput=0.1, dram_throughput=0.3) == [waits]
    assert effects_of(sm_throughput=0.1) == [waits]


def test_a_failed_allocation_is_not_traced_back_to_the_size_of_the_weights() -> None:
    chain = build_chain(judgement("capacity"), seen(weights_of_memory=0.9, kv_copies=8.0))
    assert chain == ()


@pytest.mark.parametrize(("heads", "devices", "copies"), [(8, 8, 1.0), (4, 8, 2.0), (1, 4, 4.0)])
def test_copies_of_kv_heads_are_counted_by_hand(heads: int, devices: int, copies: float) -> None:
    """A rank holds ceil(heads ÷ devices) of them: all hold devices · that, over heads."""
    model = ModelSpec("toy", 512, 512, 1, 8, heads, 64, 64, 4096)
    found = copies_of(model, devices)
    assert found == pytest.approx(copies)


def test_a_latent_lies_whole_on_every_device() -> None:
    model = dataclasses.replace(
        ModelSpec("toy", 512, 512, 1, 8, 8, 64, 64, 4096),
        latent=Latent(512, 64, 128, 128),
    )
    assert copies_of(model, 8) == pytest.approx(8.0)


def copies_of(model: ModelSpec, devices: int) -> float:
    subject = dataclasses.replace(ON_GPU, model=model, num_devices=devices)
    found = diagnose(Capture(subject, steps=decodes(30, 100.0)))
    return next(m.value for m in found.measures if m.name == "kv_copies")


def test_facts_know_what_held_the_queue() -> None:
    facts = facts_of(judgement("compute", "tokens", queues=True), {})
    assert (facts["held_by_tokens"], facts["held_by_prefill"], facts["queues"]) == (1, 0, 1)
