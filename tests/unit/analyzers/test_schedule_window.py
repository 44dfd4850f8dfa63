"""With a sliding window a request gives its first blocks back, and no sooner than it can."""

from __future__ import annotations

import random

import pytest

from stallscope.analyzers.schedule import Scheduler, SchedulerConfig


def config(**limits: int | bool) -> SchedulerConfig:
    defaults = {"max_num_seqs": 4, "max_num_batched_tokens": 16, "num_blocks": 8, "block_size": 4}
    return SchedulerConfig(**{**defaults, "sliding_window": 6, **limits})  # type: ignore[arg-type]


def test_blocks_of_one_request_by_hand() -> None:
    """Window 6, blocks of 4: the token at p needs tokens p - 5 … p."""
    scheduler = Scheduler(config())
    scheduler.add(0, 10, 7)
    held = []
    while scheduler.in_flight:
        plan = scheduler.schedule()
        during = scheduler.used_blocks
        scheduler.complete(plan)
        held.append((during, scheduler.blocks_of(0)))
    # The prompt of 10 takes three blocks. The token at 10 needs 5 … 10: block 0 is past; at 13 it
    # needs 8 … 13: so is block 1. The last, at 15, needs 10 … 15 and ends the request.
    assert held == [(3, 2), (2, 2), (2, 2), (3, 2), (2, 2), (2, 2), (2, 0)]


def test_most_blocks_by_hand() -> None:
    # One new token: it and 5 before it, 6 tokens, lie in three blocks at worst (3 | 4 … 7 | 8).
    assert config(max_num_batched_tokens=1).most_blocks(100) == 3
    # 16 new ones and 5 before: 21 tokens are 1 + 4 x 4 + 4 at worst.
    assert config().most_blocks(100) == 6
    assert config().most_blocks(9) == 3  # it never has more
    assert config(sliding_window=None).most_blocks(100) == 25


def test_what_a_whole_cache_could_not_hold_runs_within_a_window() -> None:
    Scheduler(config(num_blocks=6)).add(0, 90, 10)
    with pytest.raises(ValueError, match="request 0 needs 6 KV blocks, the pool has 5"):
        Scheduler(config(num_blocks=5)).add(0, 90, 10)
    with pytest.raises(ValueError, match="request 0 needs 25 KV blocks, the pool has 6"):
        Scheduler(config(num_blocks=6, sliding_window=None)).add(0, 90, 10)


def needed(cached: int, limits: SchedulerConfig) -> int:
    """Blocks that hold a token which the next one attends to, or one that is yet to be written."""
    window = limits.sliding_window or 10**9
    first = max(0, cached - window + 1)
    return len({p // limits.block_size for p in range(first, cached)})


@pytest.mark.parametrize("seed", range(150))
def test_any_load_holds_exactly_what_its_windows_reach(seed: int) -> None:
    rng = random.Random(seed)
    limits = SchedulerConfig(
        max_num_seqs=rng.randint(1, 5),
        max_num_batched_tokens=rng.randint(1, 40),
        num_blocks=1,
        block_size=rng.choice((1, 2, 4, 16)),
        chunked_prefill=rng.random() < 0.6,
        sliding_window=rng.randint(1, 30),
    )
    longest = 70 if limits.chunked_prefill else limits.max_num_batched_tokens
    sizes = [(rng.randint(1, longest), rng.randint(1, 40)) for _ in range(rng.randint(1, 8))]
    if not limits.chunked_prefill:
        sizes = [(i, min(o, longest - i + 1)) for i, o in sizes]
    least = max(limits.most_blocks(i + o - 1) for i, o in sizes)
    limits = SchedulerConfig(
        limits.max_num_seqs,
        limits.max_num_batched_tokens,
        least + rng.randint(0, 6),
        limits.block_size,
        limits.chunked_prefill,
        limits.sliding_window,
    )
    scheduler = Scheduler(limits)
    for request, size in enumerate(sizes):
        scheduler.add(request, *size)
    cached: dict[int, int] = {}
    sampled = dict.fromkeys(range(len(sizes)), 0)
    while scheduler.in_flight:
        plan = scheduler.schedule()
        assert plan.chunks, "work in flight, yet nothing scheduled"
        assert scheduler.used_blocks <= limits.num_blocks
        for request in plan.preempted:
            del cached[request]
        for chunk in plan.chunks:
            assert chunk.start == cached.get(chunk.request, 0)
            held = scheduler.blocks_of(chunk.request)
            first = max(0, chunk.start - (limits.sliding_window or 0) + 1) // limits.block_size
            assert held == limits.blocks(chunk.start + chunk.tokens) - first
            assert held <= limits.most_blocks(sum(sizes[chunk.request]) - 1)
            cached[chunk.request] = chunk.start + chunk.tokens
            sampled[chunk.request] += chunk.samples
        for request in scheduler.complete(plan):
            del cached[request]
        for request, tokens in cached.items():
            # A window of 1 needs nothing of the cache, but the block being filled stays.
            spare = scheduler.blocks_of(request) - needed(tokens, limits)
            assert spare in ((0, 1) if limits.sliding_window == 1 else (0,))
    assert sampled == {i: outputs for i, (_, outputs) in enumerate(sizes)}
    assert scheduler.used_blocks == 0


def test_most_blocks_is_reached_and_never_passed() -> None:
    """Over all places of a chunk of the largest size."""
    rng = random.Random(5)
    for _ in range(200):
        limits = config(
            block_size=rng.randint(1, 7),
            sliding_window=rng.randint(2, 20),
            max_num_batched_tokens=rng.randint(1, 20),
        )
        step = limits.max_num_batched_tokens
        held = [
            limits.blocks(start + tokens) - limits.past_blocks(start)
            for start in range(150)
            for tokens in range(1, step + 1)
        ]
        assert max(held) == limits.most_blocks(10**6)
