"""What must not change the verdict: another unit of time, a GPU nobody uses, order in a window."""

from __future__ import annotations

import dataclasses
import random

import pytest
from changes import shuffled, slowed, with_idle_gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from known_captures import NAMES, class_of, known

from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.capture import Capture

# A benchmark's own figures are of many names; the rest is ours to scale.
SCALED = tuple(n for n in NAMES if "benchmark" not in known(n).meta)


def without_client(capture: Capture) -> Capture:
    """Leave out what a client printed into a server's log."""
    meta = {key: value for key, value in capture.meta.items() if key != "printed_benchmark"}
    return dataclasses.replace(capture, meta=meta)


@pytest.mark.parametrize("name", SCALED)
@given(k=st.floats(0.3, 4.0))
@settings(max_examples=4, deadline=None)
def test_everything_slower_on_a_slower_device(name: str, k: float) -> None:
    capture = without_client(known(name))
    before, after = diagnose(capture), diagnose(slowed(capture, k))
    assert after.verdict.bottleneck == before.verdict.bottleneck
    assert after.verdict.load == before.verdict.load
    for one, other in zip(before.phases, after.phases, strict=True):
        shares = {p.part: p.share for p in one.budget}
        # Times are whole nanoseconds.
        assert {p.part: p.share for p in other.budget} == pytest.approx(shares, abs=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_a_gpu_that_nobody_uses(name: str) -> None:
    capture = known(name)
    before, after = diagnose(capture).verdict, diagnose(with_idle_gpu(capture)).verdict
    assert after.bottleneck == before.bottleneck
    assert after.confidence == before.confidence


@pytest.mark.parametrize("name", [n for n in NAMES if known(n).device_samples])
@given(seed=st.integers(0, 1000), windows=st.integers(1, 12))
@settings(max_examples=10, deadline=None)
def test_the_order_of_device_samples_in_a_window(name: str, seed: int, windows: int) -> None:
    capture = known(name)
    assert class_of(shuffled(capture, windows, random.Random(seed))) == class_of(capture)
