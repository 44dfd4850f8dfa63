"""How far probes moved: notes tell the change, gains take it as an error."""

from __future__ import annotations

import pytest
from capture_builders import event

from stallscope.analyzers.cost.drift import drift, probe_changes
from stallscope.profiler.capture import Capture, Event


def probes(name: str, before: float, after: float) -> tuple[Event, ...]:
    return tuple(
        event("probe", probe=name, when=when, value=value)
        for when, value in (("before", before), ("after", after))
    )


def test_changes_are_relative_to_the_first_reading() -> None:
    capture = Capture(events=(*probes("stream", 40.0, 30.0), *probes("gemm", 100.0, 125.0)))
    assert probe_changes(capture) == {"stream": -0.25, "gemm": 0.25}
    assert drift(capture) == 0.25  # 30 is a quarter below 40; 100 is a fifth below 125


def test_a_rise_counts_as_the_fall_that_undoes_it() -> None:
    assert drift(Capture(events=probes("stream", 20.0, 80.0))) == pytest.approx(0.75)


def test_one_reading_tells_nothing() -> None:
    capture = Capture(events=probes("stream", 40.0, 30.0)[:1])
    assert (probe_changes(capture), drift(capture)) == ({}, 0.0)
