"""Hand-worked plans of the scheduler: every expected block count is added up in the comments."""

from __future__ import annotations

import pytest

from stallscope.analyzers.schedule import ScheduledChunk, Scheduler, SchedulerConfig, StepPlan


def scheduler(**limits: int | bool) -> Scheduler:
    defaults = {"max_num_seqs": 4, "max_num_batched_tokens": 16, "num_blocks": 8, "block_size": 4}
    return Scheduler(SchedulerConfig(**{**defaults, **limits}))  # type: ignore[arg-type]


def shape(plan: StepPlan) -> list[tuple[int, int, int, bool, bool]]:
    return [(c.request, c.start, c.tokens, c.is_prefill, c.samples) for c in plan.chunks]


def test_one_request_from_prompt_to_end() -> None:
    s = scheduler()
    s.add(7, input_tokens=5, output_tokens=3)
    assert (s.waiting, s.running, s.in_flight, s.used_blocks) == (1, 0, 1, 0)

    prefill = s.schedule()
    assert prefill == StepPlan(
        chunks=(ScheduledChunk(7, start=0, tokens=5, is_prefill=True, samples=True),),
        admitted=(7,),
        preempted=(),
        blocked_by=None,
    )
    assert s.used_blocks == 2  # 5 tokens in blocks of 4
    assert s.blocks_of(7) == 2
    assert s.complete(prefill) == ()

    # Output tokens 2 and 3 come from processing output tokens 1 and 2, at positions 5 and 6;
    # output token 3 itself never enters the cache: 7 tokens, still 2 blocks.
    second = s.schedule()
    assert shape(second) == [(7, 5, 1, False, True)]
    assert s.complete(second) == ()
    third = s.schedule()
    assert shape(third) == [(7, 6, 1, False, True)]
    assert s.used_blocks == 2
    assert s.complete(third) == (7,)
    assert (s.in_flight, s.used_blocks, s.blocks_of(7)) == (0, 0, 0)
    assert s.schedule() == StepPlan((), (), (), None)


def test_a_prompt_is_split_and_decodes_come_first() -> None:
    s = scheduler(num_blocks=32)
    s.add(1, 4, 9)
    s.complete(s.schedule())
    s.add(2, 40, 2)
    # Budget 16: one decode token of request 1, then 15 of request 2's 40.
    first = s.schedule()
    assert shape(first) == [(1, 4, 1, False, True), (2, 0, 15, True, False)]
    s.complete(first)
    second = s.schedule()
    assert shape(second) == [(1, 5, 1, False, True), (2, 15, 15, True, False)]
    s.complete(second)
    last = s.schedule()
    assert shape(last) == [(1, 6, 1, False, True), (2, 30, 10, True, True)]


def test_token_budget_blocks_the_head() -> None:
    s = scheduler(num_blocks=32)
    s.add(1, 16, 4)
    s.add(2, 4, 4)
    plan = s.schedule()
    assert shape(plan) == [(1, 0, 16, True, True)]
    assert plan.blocked_by == "tokens"


def test_sequence_cap_blocks_the_head() -> None:
    s = scheduler(max_num_seqs=1)
    s.add(1, 4, 4)
    s.add(2, 4, 4)
    plan = s.schedule()
    assert plan.admitted == (1,)
    assert plan.blocked_by == "seqs"


def test_kv_blocks_the_head_even_at_the_sequence_cap() -> None:
    # 4 blocks of 4: request 1 takes 3, request 2's prompt needs 2. Raising the cap would not help.
    s = scheduler(num_blocks=4, max_num_seqs=1)
    s.add(1, 12, 4)
    s.add(2, 8, 4)
    assert s.schedule().blocked_by == "kv"


def test_preempts_the_last_admitted_and_recomputes_what_it_had() -> None:
    # 4 blocks of 4. Prompts of 7: two blocks each, the pool is full.
    s = scheduler(num_blocks=4)
    s.add(1, 7, 6)
    s.add(2, 7, 6)
    both = s.schedule()
    assert both.admitted == (1, 2)
    assert s.used_blocks == 4
    s.complete(both)
    s.complete(s.schedule())  # position 7: fills the second block of each
    # Position 8 of request 1 needs a third block: request 2 goes, its two blocks come back.
    plan = s.schedule()
    assert plan == StepPlan((ScheduledChunk(1, 8, 1, False, True),), (), (2,), "kv")
    assert (s.used_blocks, s.running, s.waiting) == (3, 1, 1)
    s.complete(plan)
    # Request 2 knows 7 + 2 = 9 tokens: 3 blocks, one is free. It waits until request 1 ends.
    for start in (9, 10):
        plan = s.schedule()
        assert shape(plan) == [(1, start, 1, False, True)]
        assert plan.blocked_by == "kv"
        s.complete(plan)
    plan = s.schedule()
    assert shape(plan) == [(1, 11, 1, False, True)]  # 12 tokens in cache = 7 + 6 - 1
    assert s.complete(plan) == (1,)
    plan = s.schedule()
    assert plan.admitted == (2,)
    assert shape(plan) == [(2, 0, 9, True, True)]
    assert s.complete(plan) == ()
    assert shape(s.schedule()) == [(2, 9, 1, False, True)]


def test_no_admission_in_a_step_that_preempted() -> None:
    # Preempting 3 frees more than request 1 needs; 4's one-block prompt could enter but must not,
    # and it stands behind 3 anyway.
    s = scheduler(num_blocks=5, max_num_seqs=3, max_num_batched_tokens=32)
    s.add(1, 4, 8)
    s.add(2, 4, 8)
    s.add(3, 12, 8)
    s.add(4, 1, 2)
    first = s.schedule()
    assert first.admitted == (1, 2, 3)
    s.complete(first)
    plan = s.schedule()
    assert plan.preempted == (3,)
    assert plan.admitted == ()
    assert shape(plan) == [(1, 4, 1, False, True), (2, 4, 1, False, True)]
    assert s.used_blocks == 4
    assert s.waiting == 2


def test_a_request_that_cannot_go_on_preempts_itself() -> None:
    # 4 blocks of 4: request 1 grows to 16 tokens, request 2 sits on the last block it may have.
    s = scheduler(num_blocks=4)
    s.add(1, 11, 2)
    s.add(2, 4, 4)
    s.complete(s.schedule())  # 3 + 1 blocks
    plan = s.schedule()  # request 1: 12th token, same block; request 2: 5th token, no block
    assert shape(plan) == [(1, 11, 1, False, True)]
    assert plan.preempted == (2,)


def test_unchunked_steps_are_whole_prompts_or_decodes() -> None:
    s = scheduler(chunked_prefill=False, num_blocks=32)
    s.add(1, 10, 3)
    s.add(2, 5, 3)
    s.add(3, 4, 3)
    first = s.schedule()  # 10 + 5 = 15 of 16; 4 more would not fit
    assert shape(first) == [(1, 0, 10, True, True), (2, 0, 5, True, True)]
    assert first.blocked_by == "tokens"
    s.complete(first)
    second = s.schedule()  # prompts go before decodes
    assert shape(second) == [(3, 0, 4, True, True)]
    s.complete(second)
    third = s.schedule()
    assert shape(third) == [(1, 10, 1, False, True), (2, 5, 1, False, True), (3, 4, 1, False, True)]


def test_end_of_sequence_ends_a_request_early() -> None:
    s = scheduler()
    s.add(1, 3, 30)
    s.complete(s.schedule())
    plan = s.schedule()
    assert s.complete(plan, stopped={1}) == (1,)
    assert (s.in_flight, s.used_blocks) == (0, 0)


def test_a_stop_in_the_middle_of_a_prompt_is_no_stop() -> None:
    s = scheduler(num_blocks=32)
    s.add(1, 20, 2)
    assert s.complete(s.schedule(), stopped={1}) == ()
    assert s.running == 1


@pytest.mark.parametrize(
    ("limits", "tokens", "message"),
    [
        # 33 + 1 tokens leave 33 in the cache: 9 blocks of 4.
        ({}, (33, 1), "needs 9 KV blocks, the pool has 8"),
        ({}, (30, 4), "needs 9 KV blocks"),
        ({"chunked_prefill": False}, (10, 8), r"prefill 17 tokens.*budget \(16\)"),
        ({}, (0, 4), "at least one token"),
        ({}, (4, 0), "at least one token"),
    ],
)
def test_a_request_that_can_never_run_is_refused(
    limits: dict[str, int | bool], tokens: tuple[int, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        scheduler(**limits).add(1, *tokens)


def test_the_largest_request_that_fits_runs_to_its_end() -> None:
    s = scheduler()
    s.add(1, 30, 3)  # 32 tokens in the cache: exactly 8 blocks
    finished: tuple[int, ...] = ()
    for _ in range(4):  # 16, 14 tokens of the prompt, then two decodes
        assert finished == ()
        finished = s.complete(s.schedule())
    assert finished == (1,)


def test_limits_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        scheduler(max_num_seqs=0)
