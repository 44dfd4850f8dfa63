"""What preemption cost, by hand and on runs of the real scheduler without a queue."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import MS, decodes, event, request, step
from played_run import play

from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.preemption import (
    Preemption,
    count_preemptions,
    observe_preemption,
    recomputed_tokens,
)
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.ranks import engine_steps
from stallscope.analyzers.result import Diagnosis
from stallscope.analyzers.schedule import SchedulerConfig
from stallscope.analyzers.step.budget import StepCost, cost_steps, measured_steps
from stallscope.analyzers.whatif.simulate import Overhead
from stallscope.profiler.capture import Capture, Request
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model

# 6 ms of prefill, 4 ms of decode; 48 tokens prefilled.
STEPS = (
    step(0, 0, 4, phase="prefill", prefill_tokens=32),
    *(step(i, 3 + i, 1) for i in range(1, 5)),
    step(5, 8, 2, phase="prefill", prefill_tokens=16),
)
RUN = Span(0, 10 * MS)


def priced(capture: Capture) -> tuple[StepCost, ...]:
    return cost_steps(engine_steps(measured_steps(capture)), None)


def again(rows: tuple[Request, ...], span: Span = RUN) -> int | None:
    capture = Capture(steps=STEPS, requests=rows)
    inside = [c for c in priced(capture) if span.start_ns <= c.step.start_ns < span.end_ns]
    return recomputed_tokens(capture, inside, span)


def prompt(index: int, tokens: int, **facts: int | str) -> Request:
    return request(index, 0, 0, 4, 10, input_tokens=tokens, cached_tokens=0, **facts)


def test_what_was_prefilled_beyond_the_prompts() -> None:
    assert again((prompt(0, 16), prompt(1, 16))) == 16
    cached = prompt(1, 16)._replace(cached_tokens=4)
    assert again((prompt(0, 16), cached)) == 20


def test_a_prompt_that_was_never_admitted_was_not_prefilled() -> None:
    """Of eight requests in a run that was cut, six still wait."""
    queue = tuple(
        request(i, 0, None, None, None, input_tokens=100, status="waiting") for i in range(2, 8)
    )
    assert again((prompt(0, 16), prompt(1, 16), *queue)) == 16


def test_a_first_token_tells_of_an_admission_that_was_not_noted() -> None:
    unseen = request(1, 0, None, 4, 10, input_tokens=16, cached_tokens=0)
    assert again((prompt(0, 16), unseen)) == 16


def test_unknown_is_not_zero() -> None:
    rows = (prompt(0, 16, preemptions=1),)
    assert recomputed_tokens(Capture(requests=rows), (), RUN) is None  # no steps
    assert again(()) is None
    # 60 tokens of prompts, 48 prefilled: an unknown part came from a prefix cache.
    unknown = tuple(prompt(i, 30)._replace(cached_tokens=None) for i in range(2))
    assert again(unknown) is None
    assert again(tuple(r._replace(cached_tokens=0) for r in unknown)) == 0


def test_a_window_counts_the_prompts_that_were_due_in_it() -> None:
    rows = (prompt(0, 16), prompt(1, 16))
    assert again(rows, Span(0, 5 * MS)) == 0
    assert again(rows, Span(5 * MS, 10 * MS)) == 16
    # Half of each prompt by 2 ms; the whole step of 32 tokens starts in there.
    assert again(rows, Span(0, 2 * MS)) == 16


def test_preemptions_by_rows_then_by_events() -> None:
    assert count_preemptions(Capture()) is None
    assert count_preemptions(Capture(requests=(prompt(0, 1),))) is None
    assert count_preemptions(Capture(requests=(prompt(0, 1, preemptions=0),))) == 0
    both = Capture(requests=(prompt(0, 1, preemptions=2),), events=(event("preempt", 1, 0),))
    assert count_preemptions(both) == 2
    assert count_preemptions(dataclasses.replace(both, requests=())) == 1


def test_cost_by_hand() -> None:
    """16 of 48 tokens again, of 6 ms in 10: a fifth. 1 ms preempted of 2 · 10: a twentieth."""
    rows = (prompt(0, 16, preemptions=1, preempted_ns=MS), prompt(1, 16, preemptions=0))
    capture = Capture(steps=STEPS, requests=rows)
    found = observe_preemption(capture, priced(capture), None, RUN)
    assert found == Preemption(pytest.approx(0.2), pytest.approx(0.05))
    assert found.cost == pytest.approx(0.25)
    untimed = tuple(r._replace(preempted_ns=None) for r in rows)
    found = observe_preemption(Capture(requests=untimed), (), None, RUN)
    assert found == Preemption(None, None)
    quiet = tuple(r._replace(preemptions=0) for r in rows)
    assert observe_preemption(Capture(steps=STEPS, requests=quiet), (), None, RUN) is None
    assert observe_preemption(Capture(steps=decodes(3)), (), None, RUN) is None


def test_below_the_line_the_step_decides() -> None:
    """The same run with 5 ms of decode more: 2 of 15 ms and 1 of 30 are 0.17 < 0.20."""
    longer = (*STEPS, *(step(i, i, 1) for i in range(10, 15)))
    rows = (
        request(0, 0, 0, 4, 15, cached_tokens=0, preemptions=1, preempted_ns=MS),
        request(1, 0, 0, 4, 15, cached_tokens=0, preemptions=0),
    )
    assert diagnose(Capture(steps=longer, requests=rows)).verdict.bottleneck != "capacity"
    short = tuple(r._replace(end_ns=10 * MS) for r in rows)
    assert diagnose(Capture(steps=STEPS, requests=short)).verdict.bottleneck == "capacity"


A100 = load_device("a100-sxm4-80gb")
LLAMA = load_model("llama-3-8b")
PEAKS = Machine(A100.peak_flops["fp16"], A100.memory_bytes_per_s, "datasheet")
COST = CostModel(LLAMA, "fp16", "fp16", PEAKS)


def eight(inputs: int, outputs: int, budget: int, holds: float) -> Diagnosis:
    """Eight requests at once on a pool that holds so many at full length; none queues long."""
    blocks = int(-(-(inputs + outputs) // 16) * holds)
    config = SchedulerConfig(64, budget, blocks)
    truth = Overhead(per_step=0.002)
    run = play([(inputs, outputs)] * 8, config, clients=8, truth=truth, cost=COST)
    run = dataclasses.replace(run, subject=dataclasses.replace(run.subject, device=A100))
    return diagnose(run)


@pytest.mark.parametrize(
    ("inputs", "outputs", "budget", "holds"), [(2000, 2000, 2048, 6.0), (8000, 500, 8192, 7.9)]
)
def test_thrash_without_a_queue_is_capacity(
    inputs: int, outputs: int, budget: int, holds: float
) -> None:
    """Some of eight are always out, and hardly a queue shows: the cliff of a pool that is full."""
    found = eight(inputs, outputs, budget, holds)
    verdict, values = found.verdict, {m.name: m.value for m in found.measures}
    assert values["queue_wait_share"] < 0.20
    assert values["recompute_share"] + values["preempted_share"] >= 0.20
    assert (verdict.bottleneck, verdict.load) == ("capacity", "served")
    assert verdict.sentence.startswith("The KV cache is full: running requests are preempted, ")
    assert "more KV room would buy" in verdict.sentence
    assert [(link.cause, link.effect) for link in verdict.chain] == [
        ("KV pool full", "preemption"),
        ("preemption", "prompt and output prefilled again"),
        ("prompt and output prefilled again", "fewer new tokens per second"),
    ]
    assert verdict.limits.tpot == "capacity"
    assert "KV cache more room" in found.remedies[0].action
    assert found.remedies[0].gain is not None


def test_room_for_all_is_no_thrash() -> None:
    found = eight(8000, 500, 8192, 8.0)
    assert {m.name: m.value for m in found.measures}["preemptions"] == 0
    assert found.verdict.bottleneck != "capacity"


def test_a_few_preemptions_are_no_bottleneck() -> None:
    """Short prompts on a pool for 7.2: all is prefilled again in under 1 % of step time."""
    found = eight(500, 500, 2048, 7.2)
    assert {m.name: m.value for m in found.measures}["preemptions"] > 0
    assert found.verdict.bottleneck == "bandwidth"


def test_a_queue_behind_prompts_that_run_again_is_an_effect_of_the_full_pool() -> None:
    """Half of all prefill is done again; the queue stands at the token budget."""
    facts = {"waiting": 1, "running": 2, "blocked_by": "tokens", "prefill_tokens": 32}
    steps = tuple(step(i, 10 * i, 10, phase="prefill", **facts) for i in range(4))
    rows = (
        request(0, 0, 0, 20, 40, input_tokens=32, cached_tokens=0, preemptions=1, preempted_ns=MS),
        request(1, 0, 0, 20, 40, input_tokens=32, cached_tokens=0, preemptions=0),
        request(2, 0, 39, None, None, input_tokens=0, preemptions=0),
    )
    found = diagnose(Capture(steps=steps, requests=rows)).verdict
    assert (found.bottleneck, found.load, found.next_limit) == ("capacity", "overloaded", "compute")
    assert found.chain[-2].cause == "prompt and output prefilled again"
    assert found.chain[-2].effect == found.chain[-1].cause == "requests queue"
