"""The limit of a plan under its load, by the verdict's own engine, where each class is plain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.likely import likely_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.plan.memory import memory_map
from stallscope.analyzers.plan.options import PlanOptions, subject_of
from stallscope.analyzers.plan.planner import plan
from stallscope.analyzers.plan.predicted_run import predicted_run
from stallscope.analyzers.plan.predictions import simulated
from stallscope.profiler.capture import Capture
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model

LLAMA, A10G, H100 = load_model("llama-7b"), load_device("a10g"), load_device("h100-sxm")
USUAL = PlanOptions(LLAMA, A10G, dtype="fp16", output_tokens=128)


@pytest.mark.parametrize(
    ("options", "bottleneck", "load"),
    [
        # 13.2 GB of weights at 600 GB/s, 22 ms, against 2 ms of host and launches.
        (USUAL, "bandwidth", "served"),
        # Prompts of 4,000 tokens for 4 of output: 64 wait for 2,048 prompt tokens a step.
        (
            replace(USUAL, device=H100, input_tokens=1800, output_tokens=4, concurrency=64),
            "compute",
            "overloaded",
        ),
        # 26 million parameters on an H100: 1.27 ms of host against microseconds of reading.
        (
            PlanOptions(load_model("tiny-26m"), H100, dtype="fp16", input_tokens=64),
            "host",
            "served",
        ),
        # 256 in and 1,536 out: room for 10 whole requests, and 64 that want to run.
        (
            replace(USUAL, input_tokens=256, output_tokens=1536, concurrency=64),
            "capacity",
            "overloaded",
        ),
    ],
)
def test_the_engine_names_the_limit_of_a_plan(
    options: PlanOptions, bottleneck: str, load: str
) -> None:
    limit = plan(options).limit
    assert limit is not None
    assert (limit.bottleneck, limit.load) == (bottleneck, load)
    assert limit.sentence


def test_the_predicted_run_is_served_as_the_headline_says() -> None:
    """24 clients, room for 17 whole requests, until the queue is down.

    The headline's loop holds its end, where fewer and fewer run: it makes somewhat less.
    """
    options = replace(USUAL, concurrency=24, input_tokens=256, output_tokens=700)
    memory = memory_map(options, subject_of(options))
    cost = build_cost_model(Capture(subject=subject_of(options)))
    assert isinstance(cost, CostModel)
    run = predicted_run(options, memory, cost)
    result = simulated(options, memory, *likely_model(cost))
    assert run is not None
    assert result is not None
    seconds = (run.steps[-1].end_ns - run.steps[0].start_ns) * 1e-9
    made = sum(s.logit_rows or 0 for s in run.steps)
    assert 1.0 < made / seconds / result.output_tokens_per_s < 1.2
    assert all(a.end_ns == b.start_ns for a, b in zip(run.steps, run.steps[1:], strict=False))
    # A client sends its next request when its last one ends: all are in the system throughout.
    assert {(s.waiting or 0) + (s.running or 0) for s in run.steps} == {24}
    assert sum(r.preemptions or 0 for r in run.requests) > 0
    assert all((s.kv_used_bytes or 0) <= (s.kv_total_bytes or 0) for s in run.steps)
    ended = [r for r in run.requests if r.status == "finished"]
    # The 24th sends its last request at the very moment where the run is cut.
    assert (len(ended), len(run.requests) - len(ended)) == (24, 23)
    assert all(r.end_ns is None for r in run.requests if r.status == "running")


def test_what_is_simulated_in_groups_or_not_at_all_is_not_judged() -> None:
    many = plan(replace(USUAL, concurrency=129))
    assert many.limit is None
    assert "the limit under this load" in [n.what for n in many.not_observable]
    assert plan(replace(USUAL, model=load_model("llama-13b"))).limit is None  # does not fit
    assert plan(replace(USUAL, device=None)).limit is None
