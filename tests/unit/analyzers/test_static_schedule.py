"""Static batching by hand: who is in a batch, how far it is padded, what keeps the queue out."""

from __future__ import annotations

import random

import pytest

from stallscope.analyzers.schedule import Padding, Scheduler, SchedulerConfig, StepPlan
from stallscope.analyzers.static_schedule import StaticScheduler, scheduler_for

CONFIG = SchedulerConfig(
    max_num_seqs=3, max_num_batched_tokens=100, num_blocks=1, block_size=1, static=True
)


def scheduler(*sizes: tuple[int, int], config: SchedulerConfig = CONFIG) -> StaticScheduler:
    made = StaticScheduler(config)
    for request, size in enumerate(sizes):
        made.add(request, *size)
    return made


def next_step(made: StaticScheduler, *stopped: int) -> tuple[StepPlan, tuple[int, ...]]:
    plan = made.schedule()
    return plan, made.complete(plan, stopped)


def test_a_batch_of_unequal_requests_step_by_step() -> None:
    made = scheduler((4, 2), (1, 3), (2, 1))
    plan = made.schedule()
    assert [(c.request, c.start, c.tokens) for c in plan.chunks] == [
        (0, 0, 4),
        (1, 0, 1),
        (2, 0, 2),
    ]
    assert all(c.is_prefill and c.samples for c in plan.chunks)
    assert plan.admitted == (0, 1, 2)
    # Three rows of 4 tokens are 12; 7 are prompt. Each row has 4·5/2 = 10 pairs; the prompts 10, 1
    # and 3.
    assert plan.padding == Padding(tokens=5, logit_rows=0, context_tokens=5, pairs=16)
    assert (made.running, made.used_blocks) == (3, 12)
    assert made.complete(plan) == (2,)

    plan = made.schedule()
    assert [(c.request, c.start, c.tokens) for c in plan.chunks] == [(0, 4, 1), (1, 1, 1)]
    # Three rows over 5 keys; the two requests attend to 5 and 2.
    assert plan.padding == Padding(tokens=1, logit_rows=1, context_tokens=8, pairs=8)
    assert (made.running, made.used_blocks) == (2, 15)
    assert made.complete(plan) == (0,)

    plan, ended = next_step(made)
    assert [(c.request, c.start, c.tokens) for c in plan.chunks] == [(1, 2, 1)]
    assert plan.padding == Padding(tokens=2, logit_rows=2, context_tokens=15, pairs=15)  # 18 − 3
    assert ended == (1,)
    assert (made.in_flight, made.used_blocks, made.schedule().chunks) == (0, 0, ())


def test_nobody_joins_before_the_last_has_ended() -> None:
    made = scheduler((2, 1), (2, 3))
    next_step(made)
    made.add(7, 2, 1)
    for _ in range(2):
        plan, _ = next_step(made)
        assert ([c.request for c in plan.chunks], plan.blocked_by) == ([1], "batch")
    plan, _ = next_step(made)
    assert (plan.admitted, plan.blocked_by) == ((7,), None)


def test_a_full_batch_is_the_sequence_cap_s_doing_until_one_ends() -> None:
    made = scheduler((2, 1), (2, 2), (2, 3), (2, 1))
    assert [next_step(made)[0].blocked_by for _ in range(4)] == ["seqs", "batch", "batch", None]


def test_padding_counts_against_the_token_budget() -> None:
    made = scheduler((10, 1), (45, 1), (10, 1))  # three rows of 45 would be 135 tokens
    plan, _ = next_step(made)
    assert (plan.admitted, plan.blocked_by) == ((0, 1), "tokens")
    assert sum(c.tokens for c in plan.chunks) + plan.padding.tokens == 90


def test_an_end_of_sequence_token_ends_a_request() -> None:
    made = scheduler((2, 9), (2, 2))
    assert next_step(made, 0)[1] == (0,)
    assert [c.request for c in made.schedule().chunks] == [1]


@pytest.mark.parametrize("size", [(0, 1), (1, 0), (101, 1)])
def test_what_can_never_run_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="request 0 (needs|has)"):
        scheduler(size)


def test_the_limits_choose_the_scheduler() -> None:
    assert type(scheduler_for(CONFIG)) is StaticScheduler
    assert type(scheduler_for(SchedulerConfig(1, 1, 1))) is Scheduler


@pytest.mark.parametrize("seed", range(30))
def test_every_request_gets_its_tokens_and_no_more(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [(rng.randint(1, 30), rng.randint(1, 6)) for _ in range(rng.randint(1, 12))]
    made = scheduler(*sizes)
    outputs = dict.fromkeys(range(len(sizes)), 0)
    while made.in_flight:
        before = made.running
        plan, ended = next_step(made)
        assert not (plan.admitted and before)
        computed = plan.padding.tokens + sum(c.tokens for c in plan.chunks)
        assert computed <= CONFIG.max_num_batched_tokens
        assert min(plan.padding.tokens, plan.padding.context_tokens, plan.padding.pairs) >= 0
        for chunk in plan.chunks:
            outputs[chunk.request] += 1
        assert all(outputs[request] == sizes[request][1] for request in ended)
    assert outputs == {request: size[1] for request, size in enumerate(sizes)}
