"""What must hold for any load: blocks, tokens, order, and an end."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from stallscope.analyzers.schedule import Scheduler, SchedulerConfig, StepPlan


def random_config(rng: random.Random) -> SchedulerConfig:
    return SchedulerConfig(
        max_num_seqs=rng.randint(1, 6),
        max_num_batched_tokens=rng.randint(1, 40),
        num_blocks=rng.randint(2, 30),
        block_size=rng.choice((1, 2, 4, 16)),
        chunked_prefill=rng.random() < 0.6,
    )


def random_requests(rng: random.Random, config: SchedulerConfig) -> list[tuple[int, int]]:
    most = config.num_blocks * config.block_size
    if not config.chunked_prefill:
        most = min(most, config.max_num_batched_tokens)
    requests = []
    for _ in range(rng.randint(1, 12)):
        inputs = rng.randint(1, min(most, 60))
        requests.append((inputs, rng.randint(1, min(most - inputs + 1, 40))))
    return requests


class Ledger:
    """Keeps the cache's content per request on its own, from the plans alone."""

    def __init__(self, config: SchedulerConfig) -> None:
        self.config = config
        self.cached: dict[int, int] = {}
        self.sampled: dict[int, int] = defaultdict(int)
        self.first_admissions: list[int] = []

    def apply(self, plan: StepPlan) -> None:
        for request in plan.preempted:
            del self.cached[request]
        for request in plan.admitted:
            assert request not in self.cached
            self.cached[request] = 0
            if request not in self.first_admissions:
                self.first_admissions.append(request)
        for chunk in plan.chunks:
            assert chunk.start == self.cached[chunk.request]
            self.cached[chunk.request] += chunk.tokens
            self.sampled[chunk.request] += chunk.samples

    def blocks(self) -> int:
        return sum(-(-tokens // self.config.block_size) for tokens in self.cached.values())


@pytest.mark.parametrize("seed", range(400))
def test_any_load_is_served_whole_in_order_and_within_limits(seed: int) -> None:
    rng = random.Random(seed)
    config = random_config(rng)
    requests = random_requests(rng, config)
    scheduler, ledger = Scheduler(config), Ledger(config)
    to_come = list(enumerate(requests))
    finished: list[int] = []
    steps = 0
    while to_come or scheduler.in_flight:
        while to_come and (rng.random() < 0.5 or not scheduler.in_flight):
            request, (inputs, outputs) = to_come.pop(0)
            scheduler.add(request, inputs, outputs)
        plan = scheduler.schedule()
        assert plan.chunks, "work in flight, yet nothing scheduled"
        ledger.apply(plan)
        assert scheduler.used_blocks == ledger.blocks() <= config.num_blocks
        assert scheduler.running == len(ledger.cached) <= config.max_num_seqs
        assert sum(chunk.tokens for chunk in plan.chunks) <= config.max_num_batched_tokens
        assert not (plan.preempted and plan.admitted)
        assert (plan.blocked_by is None) == (scheduler.waiting == 0)
        kinds = [chunk.is_prefill for chunk in plan.chunks]
        assert kinds == sorted(kinds), "a prefill stands before a decode"
        if not config.chunked_prefill:
            assert len(set(kinds)) == 1
        for request in scheduler.complete(plan):
            del ledger.cached[request]
            finished.append(request)
        steps += 1
        assert steps < 100_000, "no end in sight"
    assert sorted(finished) == list(range(len(requests)))
    assert dict(ledger.sampled) == {i: outputs for i, (_, outputs) in enumerate(requests)}
    assert ledger.first_admissions == list(range(len(requests)))
    assert scheduler.used_blocks == 0


def test_the_random_loads_include_preemptions_and_splits() -> None:
    """The property test above is only worth something if it meets the hard cases."""
    preemptions = splits = 0
    for seed in range(400):
        rng = random.Random(seed)
        config = random_config(rng)
        scheduler = Scheduler(config)
        for request, (inputs, outputs) in enumerate(random_requests(rng, config)):
            scheduler.add(request, inputs, outputs)
        while scheduler.in_flight:
            plan = scheduler.schedule()
            preemptions += len(plan.preempted)
            splits += sum(chunk.is_prefill and not chunk.samples for chunk in plan.chunks)
            scheduler.complete(plan)
    assert preemptions > 100
    assert splits > 100
