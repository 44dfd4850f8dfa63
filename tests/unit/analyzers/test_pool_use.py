"""How full sampled pools were: the peak over every reading, the mean over time."""

from __future__ import annotations

import pytest

from stallscope.analyzers.load.pool_use import pool_measures
from stallscope.analyzers.load.span import Span, run_span
from stallscope.profiler.capture import Capture, EngineSample

S = 1_000_000_000


def sampled(engine: str, *readings: tuple[float, float]) -> list[EngineSample]:
    """Two requests running and one waiting, and a pool's use at each second."""
    return [
        EngineSample(round(t * S), engine, name, value)
        for t, used in readings
        for name, value in (("waiting", 1.0), ("running", 2.0), ("kv_used_fraction", used))
    ]


def use(samples: list[EngineSample], span: Span | None = None) -> dict[str, float]:
    capture = Capture(engine_samples=tuple(samples))
    span = span or run_span(capture)
    assert span is not None
    return {m.name: m.value for m in pool_measures(capture, span)}


def test_the_last_reading_may_be_the_peak() -> None:
    found = use(sampled("0", (1, 0.10), (2, 0.30), (3, 0.99)))
    assert found["kv_used_peak"] == 0.99
    # 0.10 held for a second and 0.30 for one; how long 0.99 held is not known.
    assert found["kv_used_mean"] == pytest.approx(0.20)


def test_a_reading_after_the_span_is_not_of_it() -> None:
    found = use(sampled("0", (1, 0.10), (2, 0.30), (3, 0.99)), Span(S, 2 * S))
    assert found["kv_used_peak"] == 0.30


def test_the_peak_of_an_engine_that_is_read_just_after_another() -> None:
    # 1.1 s and 2.1 s are no points of the common grid: nearer than half a second to the other's.
    rows = sampled("0", (1, 0.1), (2, 0.1), (3, 0.1), (4, 0.1))
    rows += sampled("1", (1.1, 0.2), (2.1, 0.9), (2.2, 0.2), (3.1, 0.2), (4.1, 0.2))
    assert use(rows)["kv_used_peak"] == 0.9
