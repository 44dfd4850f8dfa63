"""Less evidence: never a surer verdict, and no class of which nothing is left."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from capture_builders import samples
from changes import sample_names, with_subject, without_fields, without_samples
from known_captures import BUILT, NAMES, class_of, known, with_facts

from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.capture import Capture
from stallscope.profiler.reading import read_inputs

# Measures that a verdict cites, by the samples that they are made of; a device's measures name
# theirs as their source.
MADE_OF = {
    "queue_wait_share": ("waiting",),
    "idle_share": ("running", "waiting"),
    "limit_kv": ("kv_used_fraction", "kv_used_bytes", "kv_total_bytes"),
    "limit_seqs": ("running",),
    "preemptions": ("preemptions_total",),
}


def cited(capture: Capture) -> list[str]:
    """Name the samples behind the measures in a verdict's chain, its remedies and its rules."""
    found = diagnose(capture)
    names = {name for link in found.verdict.chain for name in link.evidence}
    names |= {name for remedy in found.remedies for name in remedy.evidence}
    sources = [m.source for m in found.measures if m.name in names]
    sources += [m.source for rule in found.rules for m in rule.measures]
    return [
        name
        for name in sample_names(capture)
        if any(name in MADE_OF.get(measure, ()) for measure in names)
        or any(f" {name} " in f" {source} " for source in sources)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_without_a_sample_that_it_cites_a_verdict_is_no_surer(name: str) -> None:
    capture = known(name)
    before = diagnose(capture).verdict
    for gone in cited(capture):
        after = diagnose(without_samples(capture, (gone,))).verdict
        if after.bottleneck == before.bottleneck:
            assert after.confidence <= before.confidence, gone


@pytest.mark.parametrize("name", [n for n in NAMES if known(n).steps])
@pytest.mark.parametrize(
    "fields",
    [
        ("waiting", "running"),
        ("kv_used_bytes", "kv_total_bytes"),
        ("blocked_by",),
        ("host_ns", "device_ns"),
        ("context_tokens", "attention_pairs"),
    ],
    ids=lambda fields: "+".join(fields),
)
def test_with_less_said_of_each_step_a_verdict_is_no_surer(
    name: str, fields: tuple[str, ...]
) -> None:
    capture = known(name)
    before = diagnose(capture).verdict
    after = diagnose(without_fields(capture, *fields)).verdict
    if after.bottleneck == before.bottleneck:
        assert after.confidence <= before.confidence


def blind_to_capacity(capture: Capture) -> Capture:
    """Nothing of the pool, of preemption, or of memory that was refused."""
    seen = without_fields(capture, "kv_used_bytes", "kv_total_bytes", "blocked_by")
    pool = [n for n in sample_names(seen) if n.startswith(("kv_", "preempt", "waiting_"))]
    requests = tuple(r._replace(preemptions=None, preempted_ns=None) for r in seen.requests)
    events = tuple(e for e in seen.events if e.kind not in ("oom", "preempt", "check", "kv_alloc"))
    return dataclasses.replace(without_samples(seen, pool), requests=requests, events=events)


def blind_to_queues(capture: Capture) -> Capture:
    """Nothing of what waits, where, and of when requests were let in."""
    seen = without_fields(capture, "waiting", "running", "blocked_by")
    queue = [n for n in sample_names(seen) if "waiting" in n or "running" in n or "queue" in n]
    return dataclasses.replace(without_samples(seen, queue), requests=(), events=())


def blind_to_the_step(capture: Capture) -> Capture:
    """Neither model nor device, no counter and no kernel; nothing of prompts that come in."""
    seen = with_subject(capture, model=None, device=None)
    counted = [n for n in sample_names(seen) if n.startswith(("input_tokens", "estimated_"))]
    return dataclasses.replace(
        without_samples(seen, counted), device_samples=(), kernels=(), steps=()
    )


def blind_to_the_host(capture: Capture) -> Capture:
    """No host time, no timeline, nothing of queues in front of the scheduler."""
    front = [n for n in sample_names(capture) if n.startswith("front_") or "kernel_busy" in n]
    seen = without_samples(without_fields(capture, "host_ns", "device_ns"), front)
    return dataclasses.replace(seen, kernels=())


def blind_to_links(capture: Capture) -> Capture:
    """One device, everything in its memory, and no kernel that moves bytes."""
    moving = ("communication", "copy")
    kept = tuple(row for row in capture.kernels if row.kernel_class not in moving)
    alone = with_subject(capture, num_devices=1, cpu_offload_bytes=None)
    return dataclasses.replace(alone, kernels=kept)


def blind_to_offers(capture: Capture) -> Capture:
    """Nothing of how much load was meant to come."""
    told = {key: value for key, value in capture.meta.items() if key != "benchmark"}
    seen = dataclasses.replace(capture, meta=told)
    return with_subject(seen, concurrency=None, rate_per_s=None)


def blind_to_clocks(capture: Capture) -> Capture:
    """No clock."""
    return without_samples(capture, [n for n in sample_names(capture) if "clock" in n])


def blind_to_demand(capture: Capture) -> Capture:
    """Nothing of requests, and of how busy anything was."""
    queue = [n for n in sample_names(capture) if "waiting" in n or "running" in n]
    seen = without_samples(without_fields(capture, "waiting", "running"), queue)
    return dataclasses.replace(seen, requests=(), device_samples=())


# Without what a class rests on.
BLIND: dict[str, Callable[[Capture], Capture]] = {
    "capacity": blind_to_capacity,
    "scheduling": blind_to_queues,
    "bandwidth": blind_to_the_step,
    "compute": blind_to_the_step,
    "host": blind_to_the_host,
    "interconnect": blind_to_links,
    "client": blind_to_offers,
    "device": blind_to_clocks,
    "none": blind_to_demand,
}


@pytest.mark.parametrize("bottleneck", BLIND)
@pytest.mark.parametrize("name", NAMES)
def test_no_class_of_which_nothing_is_left(name: str, bottleneck: str) -> None:
    assert class_of(BLIND[bottleneck](known(name))) != bottleneck


RUN = "infx_dsr1fp4_b200_tp4_bs64_offloadoff"
SOURCES = (f"logs/vllm__{RUN}.server.log", f"prom_ts/{RUN}_server_metrics.csv")


def test_one_of_two_sources_that_agree_is_no_surer(corpus: Path) -> None:
    alone = [with_facts(read_inputs([corpus / file]), {}) for file in SOURCES]
    both = with_facts(read_inputs([corpus / file for file in SOURCES]), {})
    joined, *single = (diagnose(c).verdict for c in (both, *alone))
    assert {joined.bottleneck} == {v.bottleneck for v in single} == {"capacity"}
    assert max(v.confidence for v in single) <= joined.confidence


@pytest.mark.parametrize(
    ("name", "counter", "value"),
    [("reading on a GPU", "gpm_dram_util", 0.5), ("slow cores", "nsys_sm_issue", 0.6)],
)
def test_a_counter_that_agrees_makes_a_budget_surer(name: str, counter: str, value: float) -> None:
    budget = known(name)
    both = dataclasses.replace(budget, device_samples=samples(counter, value))
    agreed, alone = diagnose(both).verdict, diagnose(budget).verdict
    assert agreed.bottleneck == alone.bottleneck == BUILT[name][0]
    assert agreed.confidence > alone.confidence


def test_all_that_is_cited_is_found() -> None:
    """A verdict of samples cites some, or the relation above would say nothing."""
    for name in NAMES:
        capture = known(name)
        if sample_names(capture) and diagnose(capture).verdict.chain:
            assert cited(capture), name
