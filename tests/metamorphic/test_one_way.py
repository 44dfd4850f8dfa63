"""What can only move a verdict one way: a faster memory, a higher cap, samples backwards."""

from __future__ import annotations

import dataclasses

import pytest
from changes import reversed_within, with_subject
from hypothesis import given, settings
from hypothesis import strategies as st
from known_captures import NAMES, class_of, known, played

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.preemption import preempts
from stallscope.profiler.capture import Capture


def reading_share(capture: Capture) -> float:
    """Return the part of all steps that reading weights and KV takes."""
    phase = next((p for p in diagnose(capture).phases if p.phase == "all"), None)
    parts = phase.budget if phase is not None else ()
    return sum(p.share for p in parts if p.part in ("weights", "kv"))


def with_bandwidth(capture: Capture, factor: float) -> Capture:
    device = capture.subject.device
    assert device is not None
    rate = device.memory_bytes_per_s * factor
    return with_subject(capture, device=dataclasses.replace(device, memory_bytes_per_s=rate))


@pytest.mark.parametrize("name", [n for n in NAMES if known(n).subject.device is not None])
@given(factor=st.floats(1.0, 20.0))
@settings(max_examples=3, deadline=None)
def test_a_faster_memory_alone_never_makes_it_bind_more(name: str, factor: float) -> None:
    capture = known(name)
    faster = with_bandwidth(capture, factor)
    assert reading_share(faster) <= reading_share(capture) + 1e-9
    if class_of(capture) != "bandwidth":
        assert class_of(faster) != "bandwidth"


def test_raising_the_cap_leaves_scheduling_once() -> None:
    found = [class_of(played(cap)) for cap in (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)]
    is_cap = [bottleneck == "scheduling" for bottleneck in found]
    assert is_cap[0]
    assert not is_cap[-1]
    assert is_cap == sorted(is_cap, reverse=True), found


@pytest.mark.parametrize(
    "name", [n for n in NAMES if known(n).engine_samples and not preempts(known(n))]
)
@given(ends=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)).map(sorted))
@settings(max_examples=15, deadline=None)
def test_backwards_nothing_looks_like_preemption(name: str, ends: list[float]) -> None:
    turned = reversed_within(known(name), *ends)
    assert not preempts(turned)
    assert "preempt" not in diagnose(turned).verdict.sentence
