"""What samples lack for a mean step, and where that stands: not where they were just read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from capture_builders import ON_GPU

from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.load.untold_step import untold_step
from stallscope.profiler.capture import Capture, EngineSample, Source

TOKENS = ("input_tokens_total", "output_tokens_total")


def capture(*names: str, kind: str = "metrics page", kv_tokens: float | None = None) -> Capture:
    return Capture(
        subject=ON_GPU,
        engine_samples=tuple(EngineSample(0, "0", n, 1.0) for n in ("running", "waiting", *names)),
        sources=(Source(0, kind, "http://host/metrics", "none", 0, 0),),
        meta={"metrics_page": {"kv_tokens": kv_tokens}},
    )


def why(found: Capture) -> tuple[str, str]:
    cost = build_cost_model(found)
    assert isinstance(cost, CostModel)
    missing = untold_step(found, cost)
    return missing.reason.removeprefix("the samples do not tell what a step holds: "), missing.how


@pytest.mark.parametrize(
    ("names", "size", "lacks"),
    [
        ((*TOKENS, "kv_used_fraction"), None, "how large the KV pool is"),
        ((*TOKENS,), 4096.0, "how full the KV pool is"),
        (("kv_used_fraction",), 4096.0, "tokens in and out"),
        (
            ("output_tokens_total",),
            None,
            "tokens in and out, how full the KV pool is and how large the KV pool is",
        ),
    ],
)
def test_only_what_is_missing_is_named(names: tuple[str, ...], size: float, lacks: str) -> None:
    reason, how = why(capture(*names, kv_tokens=size))
    assert reason == lacks
    assert "/metrics" not in how


def test_the_size_stands_in_the_log_of_the_start() -> None:
    _, how = why(capture(*TOKENS, "kv_used_fraction"))
    assert "log of the server's start, which states the pool's size" in how


def test_a_log_alone_is_told_to_scrape_the_page() -> None:
    _, how = why(capture("kv_used_fraction", kind="vllm log"))
    assert how == "scrape the engine's own /metrics, or trace a few steps with nsys"


def test_where_nothing_is_missing_the_load_is() -> None:
    reason, _ = why(capture(*TOKENS, "kv_used_fraction", kv_tokens=4096.0))
    assert "while requests ran" in reason
    budget = replace(ON_GPU, kv_budget_bytes=1 << 20)
    told = replace(capture(*TOKENS, "kv_used_bytes"), subject=budget)
    assert "while requests ran" in why(told)[0]
