"""Gauges that cannot be are left out and named; those at the very edge stay."""

from __future__ import annotations

import pytest
from metrics_pages import scraped, sentences
from test_page_trouble import vllm

from stallscope.profiler.capture import EngineSample
from stallscope.profiler.metrics_page.plausible import plausible


def sample(name: str, value: float) -> EngineSample:
    return EngineSample(0, "0", name, value)


@pytest.mark.parametrize(
    ("name", "value", "stays"),
    [
        ("running", 0.0, True),
        ("running", -1.0, False),
        ("kv_used_fraction", 1.05, True),
        ("kv_used_fraction", 1.06, False),
        ("waiting", 4_000.0, True),
    ],
)
def test_what_can_be(name: str, value: float, stays: bool) -> None:
    kept, said = plausible([sample(name, value)])
    assert bool(kept) == stays
    assert (said is None) == stays


def test_how_much_was_left_out() -> None:
    rows = [sample("waiting", -3.0), sample("kv_used_fraction", 45.0), sample("running", 2.0)]
    kept, said = plausible(rows)
    assert kept == rows[2:]
    assert said == (
        "2 values that cannot be were left out (kv_used_fraction, waiting: below zero, or more "
        "than the whole pool)."
    )


def test_a_pool_told_in_per_cent_is_not_full() -> None:
    capture = scraped(*(vllm(100.0 * i, kv_cache_usage_perc=45.0) for i in range(4)))
    assert not any(s.name == "kv_used_fraction" for s in capture.engine_samples)
    assert any("4 values that cannot be were left out" in text for text in sentences(capture))
    missing = [e.data for e in capture.events if e.kind == "not_observable"]
    assert ("KV cache use", "what the page says cannot be") in [
        (data["what"], data["reason"]) for data in missing
    ]
