"""Each verdict is one finding, by what decided it."""

from __future__ import annotations

import dataclasses
import random

import pytest
from capture_builders import decodes, event, request
from test_chain import judgement
from test_counter_evidence import READING, capped, hung, queued
from test_diagnose_random import random_capture
from test_kv_cliff import FULL, ROOM, served
from test_kv_copies import WHOLE, start
from test_paged_out import watched

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.findings import FINDINGS, finding_of
from stallscope.analyzers.load.queue_limits import LIMIT_CLASS
from stallscope.analyzers.step.limit import CLASS_PARTS
from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import Subject


def found(capture: Capture, goal: str | None = None) -> str | None:
    return diagnose(capture, goal=goal).verdict.finding


def test_captures_and_their_findings() -> None:
    assert found(READING) == "step-bandwidth"
    assert found(Capture()) == "no-evidence"
    assert found(dataclasses.replace(READING, events=(event("oom", bytes=9),))) == "out-of-memory"
    assert capped(memory_hz=6e9).verdict.finding == "slow-clocks"
    assert hung().verdict.finding == "hang"
    assert hung(power_w=None).verdict.finding == "limit-stalled"
    assert queued(0.96).verdict.finding == "limit-kv"
    assert queued(0.5).verdict.finding == "queue-unseen"
    asked = tuple(request(i, 0, 0, 1, 100) for i in range(2))
    few = Capture(Subject(concurrency=8), steps=decodes(100, waiting=0), requests=asked)
    assert found(few) == "client-load"
    early = tuple(request(i, 0, 0, 1, 10) for i in range(2))
    late = request(3, 999, 999, 1000, 1001)
    assert found(Capture(requests=(*early, late))) == "no-load"
    assert found(READING, "ttft") == "step-unsettled"
    assert found(start(WHOLE)) == "kv-copied"
    assert found(watched()) == "paged-out"
    assert found(served(ROOM, FULL)) == "full-pool"


def test_a_verdict_beside_the_full_pool_is_not_called_after_it() -> None:
    """Another goal's headline, and memory that failed, are no full pool's finding."""
    pool = served(ROOM, FULL)
    assert diagnose(pool, goal="tpot").verdict.bottleneck == "undetermined"
    assert found(pool, "tpot") == "step-unsettled"
    failed = dataclasses.replace(pool, events=(event("oom", bytes=9),))
    assert found(failed) == "out-of-memory"


@pytest.mark.parametrize("limit", LIMIT_CLASS)
def test_each_limit_is_a_finding_of_its_own(limit: str) -> None:
    queue = dataclasses.replace(judgement(LIMIT_CLASS[limit], limit, queues=True), branch="queue")
    assert finding_of(queue) == f"limit-{limit}"


@pytest.mark.parametrize("bottleneck", CLASS_PARTS)
def test_each_class_of_a_step_is_one(bottleneck: str) -> None:
    assert finding_of(judgement(bottleneck)) == f"step-{bottleneck}"


@pytest.mark.parametrize("seed", range(120))
def test_every_verdict_has_one_that_is_known(seed: int) -> None:
    capture = random_capture(random.Random(seed))
    assert diagnose(capture).verdict.finding in FINDINGS
