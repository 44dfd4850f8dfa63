"""Random captures, seeded: whatever is missing or odd, a whole diagnosis in readable words."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from capture_builders import (
    MS,
    ON_CPU,
    ON_GPU,
    event,
    gauges,
    kernel,
    request,
    samples,
    step,
    timed_linears,
)
from derivation import faults

from stallscope.analyzers.classes import CLASSES, LOADS
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.measures import MEASURES
from stallscope.analyzers.result import Diagnosis
from stallscope.analyzers.rules import by_id
from stallscope.profiler.capture import (
    Capture,
    Cut,
    EngineSample,
    Event,
    KernelSummary,
    Request,
    Step,
)
from stallscope.profiler.spec import Subject
from stallscope.reports.json_report import render
from stallscope.reports.markdown import render as render_markdown

SEEDS = 300


def random_steps(rng: random.Random) -> tuple[Step, ...]:
    at, rows = 0.0, []
    has_gauges, has_host, has_context = (rng.random() < 0.6 for _ in range(3))
    for index in range(rng.choice([0, 1, 5, 80])):
        at += rng.choice([0, 0, 0.01, 5])
        length = rng.choice([0.0, 0.2, 1.0, 3.0])
        facts: dict[str, Any] = {"warmup": rng.random() < 0.05, "rank": rng.choice([0, 0, 1])}
        if has_gauges:
            facts |= {"waiting": rng.choice([0, 0, 3]), "running": rng.choice([0, 1, 8])}
            facts |= {"kv_used_bytes": rng.choice([0, 500, 1000]), "kv_total_bytes": 1000}
            facts["blocked_by"] = rng.choice([None, "kv", "seqs", "tokens", "other"])
        if has_host:
            host = rng.random()
            facts |= {"host_ns": int(length * host * MS)}
            facts |= {"device_ns": int(length * (1 - host) * MS)}
        if not has_context or rng.random() < 0.01:
            facts["context_tokens"] = None
        phase = rng.choice(["prefill", "decode", "decode", "mixed", "other"])
        rows.append(step(index, at, length, phase=phase, **facts))
        at += length
    return tuple(rows)


def random_requests(rng: random.Random) -> tuple[Request, ...]:
    rows = []
    for index in range(rng.choice([0, 1, 8])):
        arrival = rng.choice([0.0, rng.uniform(0, 100)])
        times: list[float | None] = [arrival + rng.choice([0, 10, 40]) * i for i in range(1, 4)]
        known = rng.randint(0, 3)
        times = [t if i < known else None for i, t in enumerate(times)]
        facts: dict[str, Any] = {"preemptions": rng.choice([None, 0, 2])}
        facts |= {"preempted_ns": rng.choice([None, 0, 5 * MS])}
        facts |= {"output_tokens": rng.choice([0, 1, 8]), "cached_tokens": rng.choice([None, 4])}
        rows.append(request(index, arrival, *times, **facts))
    return tuple(rows)


def random_events(rng: random.Random) -> tuple[Event, ...]:
    choices: list[Callable[[], Event]] = [
        lambda: event(
            "oom", stage=rng.choice(["weights", "kv", "step"]), bytes=rng.choice([None, 9])
        ),
        lambda: event("preempt", 3, 0),
        lambda: event("error", type="ValueError", message="x"),
        lambda: event("gap", what="host", reason="x"),
        lambda: event("kv_alloc", 1, 0, blocks=1, bytes=10),
        lambda: event("kv_free", 2, 0, blocks=1, bytes=10),
        lambda: event("kv_read", 2, None, tokens=5, bytes=50),
        lambda: event("not_observable", what="PSI", reason="x"),
        lambda: event("check", sentence="x.", blocks=["verdict"], **{"class": "telemetry"}),
        lambda: event("probe", probe="stream", when="before", value=1e9, buffer_bytes=5),
    ]
    few = [choice() for choice in choices if rng.random() < 0.08]
    return (*few, *(timed_linears() if rng.random() < 0.3 else ()))


def random_kernels(rng: random.Random) -> tuple[KernelSummary, ...]:
    classes = rng.sample(["gemm", "gemv", "norm", "copy", "communication"], rng.choice([0, 2]))
    return tuple(kernel(c, rng.uniform(0, 5), rng.choice([None, 1.0])) for c in classes)


def random_capture(rng: random.Random) -> Capture:
    fields = {f.name: getattr(ON_GPU, f.name) for f in dataclasses.fields(Subject)}
    fields["device"] = rng.choice([ON_GPU.device, ON_CPU.device, None])
    fields |= {
        "model": rng.choice([ON_GPU.model, None]),
        "dtype": rng.choice(["fp32", "int4", None]),
    }
    fields |= {"num_devices": rng.choice([1, 2]), "block_size": rng.choice([None, 16])}
    fields |= {"max_num_seqs": rng.choice([None, 1, 8]), "concurrency": rng.choice([None, 8])}
    fields |= {"max_num_batched_tokens": rng.choice([None, 64])}
    names = ["gpm_sm_util", "gpm_tensor_util", "gpm_dram_util", "dcgm_dram_active"]
    names += ["nvml_gpu_util", "trace_kernel_busy", "ncu_sm_throughput", "sm_clock_hz"]
    names += ["sm_clock_max_hz", "memory_used_bytes", "memory_total_bytes"]
    rows = [samples(n, *(rng.random() for _ in range(3))) for n in names if rng.random() < 0.2]
    size = rng.choice([0, 2, 30])
    gauge_names = ["waiting", "running", "kv_used_bytes", "kv_total_bytes", "output_tokens_total"]
    series = {n: tuple(rng.randint(0, 9) for _ in range(size)) for n in gauge_names}
    return Capture(
        subject=Subject(**fields),
        steps=random_steps(rng),
        requests=random_requests(rng),
        device_samples=tuple(s for row in rows for s in row),
        engine_samples=gauges(**series) if rng.random() < 0.4 else (),
        events=random_events(rng),
        kernels=random_kernels(rng),
        cut=Cut(5 * MS, "cut at 0.0 s: the run did not end") if rng.random() < 0.2 else None,
    )


def check_whole(found: Diagnosis) -> None:
    verdict = found.verdict
    limits = dataclasses.astuple(verdict.limits)
    assert {verdict.bottleneck, *limits, *verdict.between} <= set(CLASSES)
    assert {w.bottleneck for w in found.windows} <= set(CLASSES)
    assert verdict.load in LOADS
    assert 0 <= verdict.confidence <= 1
    assert bool(verdict.between) <= (verdict.bottleneck == "undetermined")
    is_empty = found.capture.empty
    assert verdict.bottleneck != "undetermined" or is_empty or len(verdict.between) >= 2
    for m in found.measures:
        assert MEASURES[m.name][0] == m.unit
        assert math.isfinite(m.value)


def check_bandwidth_rule(found: Diagnosis) -> None:
    """More than all of the bandwidth proves nothing about it."""
    rule = by_id(found.rules, "bandwidth")
    dram = [m.value for m in rule.measures if m.name in ("dram_throughput", "mbu")]
    assert rule.status != "met" or any(0.8 < v <= 1.0 for v in dram)


def check_prose(text: str) -> None:
    assert text
    assert not re.search(r"\bNone\b|\bnan\b|\binf\b|  |\.\.|: \.|\(\)|; ;|: :", text), text
    assert not re.search(r"\d%", text), text  # a space, as reports write it


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_captures(seed: int) -> None:
    rng = random.Random(seed)
    capture = random_capture(rng)
    found = diagnose(capture, goal=rng.choice([None, "ttft", "tpot", "throughput"]))
    check_whole(found)
    check_bandwidth_rule(found)
    prose = [found.verdict.sentence, found.document.sentence, found.document.differs_because]
    prose += [r.reason for r in found.rules] + list(found.notes)
    prose += [text for n in found.not_observable for text in (n.what, n.reason)]
    for text in prose:
        if text is not None:
            check_prose(text)
    assert found.verdict.sentence.endswith(".")
    report = json.loads(render(found))
    assert report["verdict"]["class"] == found.verdict.bottleneck
    assert faults(report) == []
    assert "# " in render_markdown(found, {})


def with_engines(capture: Capture, rng: random.Random) -> Capture:
    """The random capture with up to three engines sampled, and nothing that tells more."""
    rows: list[EngineSample] = []
    for engine in range(rng.choice([1, 2, 3])):
        names = ("waiting", "running", "kv_used_bytes", "output_tokens_total")
        series = {n: tuple(float(rng.choice([0, 1, 9])) for _ in range(20)) for n in names}
        sampled = gauges(rng.choice([1.0, 2.0]), **series, kv_total_bytes=(9.0,) * 20)
        rows += [s._replace(engine=f"e{engine}") for s in sampled]
    return dataclasses.replace(capture, steps=(), requests=(), engine_samples=tuple(rows))


@pytest.mark.parametrize("seed", range(40))
def test_the_order_and_names_of_engines_change_nothing(seed: int) -> None:
    rng = random.Random(seed)
    capture = with_engines(random_capture(rng), rng)
    found = diagnose(capture)
    rows = list(capture.engine_samples)
    rng.shuffle(rows)
    assert diagnose(dataclasses.replace(capture, engine_samples=tuple(rows))) == found
    names = {"e0": "z", "e1": "y", "e2": "x"}
    renamed = tuple(s._replace(engine=names[s.engine]) for s in rows)
    again = diagnose(dataclasses.replace(capture, engine_samples=renamed))
    assert again.verdict.bottleneck == found.verdict.bottleneck
    assert [(m.name, pytest.approx(m.value)) for m in again.measures] == [
        (m.name, m.value) for m in found.measures
    ]


@pytest.mark.parametrize("seed", range(60))
def test_a_duplicated_rank_leaves_the_load_unchanged(seed: int) -> None:
    capture = random_capture(random.Random(seed))
    one = tuple(s._replace(rank=0) for s in capture.steps)
    two = tuple(s._replace(rank=1) for s in one)
    alone = diagnose(dataclasses.replace(capture, steps=one))
    both = diagnose(dataclasses.replace(capture, steps=one + two))
    assert both.verdict.load == alone.verdict.load
    assert both.verdict.bottleneck == alone.verdict.bottleneck
    assert both.phases == alone.phases
    shares = {m.name: m.value for m in alone.measures if m.name in SHARES}
    assert {m.name: m.value for m in both.measures if m.name in SHARES} == shares


SHARES = ("queue_wait_share", "idle_share", "in_flight", "recomputed_tokens")


@pytest.mark.parametrize("seed", range(150))
def test_not_knowing_a_cap_never_makes_a_class_surer(seed: int) -> None:
    rng = random.Random(seed)
    capture = random_capture(rng)
    if seed % 2:
        capture = with_engines(capture, rng)
    capture = dataclasses.replace(
        capture, subject=dataclasses.replace(capture.subject, max_num_seqs=rng.choice([1, 8]))
    )
    blind = dataclasses.replace(
        capture, subject=dataclasses.replace(capture.subject, max_num_seqs=None)
    )
    known, unknown = diagnose(capture).verdict, diagnose(blind).verdict
    if unknown.bottleneck != "undetermined":
        assert unknown.bottleneck == known.bottleneck
        assert unknown.confidence <= known.confidence
