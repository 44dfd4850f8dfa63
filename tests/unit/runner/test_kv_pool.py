"""The KV pool: its size in bytes, and which blocks a request gets."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch

from stallscope.profiler.spec import ModelSpec
from stallscope.runner.free_runs import FreeRuns
from stallscope.runner.kv_pool import KvPool, KvPoolExhausted

SPEC = ModelSpec("kv", 32, 64, 2, 4, 4, 8, 50, 256)
GQA = ModelSpec("kv-gqa", 32, 64, 3, 4, 1, 8, 50, 256)


@pytest.mark.parametrize(
    ("spec", "dtype", "bytes_per_token"),
    [
        (SPEC, "fp32", 512),  # 2 (K, V) x 2 layers x 4 heads x 8 x 4 bytes
        (GQA, "bf16", 96),  # 2 x 3 layers x 1 head x 8 x 2 bytes
        (GQA, "fp32", 192),
    ],
)
def test_bytes_are_the_tensors_own(spec: ModelSpec, dtype: str, bytes_per_token: int) -> None:
    pool = KvPool(spec, 10, 16, dtype, "cpu")
    assert pool.nbytes == 10 * 16 * bytes_per_token
    assert pool.bytes_per_token == bytes_per_token
    pool.ensure(0, 5)
    both = pool.view(0, 0, 5).stretches[0]
    assert sum(layer.nbytes for layer in both) == 5 * bytes_per_token


def test_blocks_are_counted_up_and_down() -> None:
    pool = KvPool(SPEC, 10, 16, "fp32", "cpu")
    pool.ensure(1, 16)
    assert pool.used_blocks == 1
    pool.ensure(1, 17)
    pool.ensure(1, 32)
    pool.ensure(2, 1)
    assert pool.used_blocks == 3
    pool.free(1)
    pool.free(1)
    assert pool.used_blocks == 1
    pool.free(2)
    assert pool.used_blocks == 0


def test_requests_that_grow_together_stay_in_one_stretch() -> None:
    pool = KvPool(SPEC, 64, 4, "fp32", "cpu")
    for tokens in range(8, 40):
        for request in range(4):
            pool.ensure(request, tokens)
    assert [len(pool.view(request, 0, 39).stretches) for request in range(4)] == [1, 1, 1, 1]


def test_slots_follow_the_stretches() -> None:
    pool = KvPool(SPEC, 4, 2, "fp32", "cpu")
    for request in range(4):
        pool.ensure(request, 2)
    places = {request: pool.slots(request, 0, 2)[0] for request in range(4)}
    left, right = sorted(places, key=places.__getitem__)[1:4:2]  # blocks 1 and 3
    pool.free(left)
    pool.free(right)
    pool.ensure(9, 3)  # no two free blocks are neighbours
    assert pool.slots(9, 0, 3) == [2, 3, 6]
    assert pool.slots(9, 1, 3) == [3, 6]
    assert len(pool.view(9, 0, 3).stretches) == 2


def test_a_view_shows_what_is_written_later() -> None:
    pool = KvPool(SPEC, 4, 2, "fp32", "cpu")
    pool.ensure(0, 3)
    view = pool.view(0, 0, 3)
    slots = torch.tensor(pool.slots(0, 0, 3))
    keys = torch.arange(96.0).view(3, 4, 8)
    pool.write(1, slots, keys, -keys)
    got_keys, got_values = view.layer(1)
    assert torch.equal(got_keys[0], keys.transpose(0, 1))
    assert torch.equal(got_values[0], -keys.transpose(0, 1))
    assert view.layer(0)[0].abs().max() == 0


def test_asking_for_more_than_is_free_takes_nothing() -> None:
    pool = KvPool(SPEC, 4, 2, "fp32", "cpu")
    pool.ensure(0, 5)
    with pytest.raises(KvPoolExhausted, match="request 1 needs 2 more blocks, 1 are free"):
        pool.ensure(1, 3)
    assert pool.used_blocks == 3
    with pytest.raises(KvPoolExhausted, match="request 0 owns 6 tokens of KV, not 7"):
        pool.slots(0, 5, 7)


def test_a_pool_that_holds_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="0 blocks of 16"):
        KvPool(SPEC, 0, 16, "fp32", "cpu")


def test_free_runs_by_hand() -> None:
    free = FreeRuns(10)
    assert free.place(3) == (0, 3)  # 3..9 stay free
    assert free.place(3) == (5, 3)  # their left neighbour may grow into 3 and 4
    assert free.extend(3, 5) == 2
    assert free.extend(3, 1) == 0
    assert free.total == 2
    free.give(5, 3)
    assert free.total == 5
    assert free.place(9) == (5, 5)  # 5..7 joined with 8 and 9
    free.give(0, 5)
    free.give(5, 5)
    assert free.place(10) == (0, 10)


def test_free_runs_never_give_a_block_twice() -> None:
    rng = random.Random(1)
    free, owned = FreeRuns(40), [False] * 40
    taken: list[tuple[int, int]] = []
    for _ in range(3000):
        if free.total and rng.random() < 0.55:
            start, count = free.place(rng.randint(1, 9))
            assert count >= 1
            assert not any(owned[start : start + count])
            owned[start : start + count] = [True] * count
            taken.append((start, count))
        elif taken:
            start, count = taken.pop(rng.randrange(len(taken)))
            free.give(start, count)
            owned[start : start + count] = [False] * count
        assert free.total == owned.count(False)


WINDOWED = replace(SPEC, sliding_window=6)


def test_a_window_gives_the_first_blocks_back() -> None:
    pool = KvPool(WINDOWED, 4, 4, "fp32", "cpu")
    pool.ensure(0, 10)
    pool.slide(0, 9)  # the token at 9 needs 4 … 9
    assert pool.used_blocks == 2
    pool.slide(0, 10)
    pool.ensure(0, 13)
    assert pool.used_blocks == 3
    assert pool.slots(0, 4, 13) == list(range(4, 13))
    with pytest.raises(KvPoolExhausted, match="request 0 gave tokens 3 to 4 of KV back"):
        pool.view(0, 3, 10)
    pool.slide(0, 14)  # 9 … 14: blocks 0 and 1 are past
    assert pool.used_blocks == 2
    pool.ensure(0, 24)  # one block to the right, then the ones that came back
    assert pool.used_blocks == 4
    assert pool.slots(0, 15, 18) == [15, 0, 1]
    pool.free(0)
    assert pool.used_blocks == 0


def test_without_a_window_nothing_slides() -> None:
    pool = KvPool(SPEC, 4, 4, "fp32", "cpu")
    pool.ensure(0, 16)
    pool.slide(0, 16)
    assert pool.used_blocks == 4


@pytest.mark.parametrize("seed", range(20))
def test_sliding_requests_keep_what_they_wrote(seed: int) -> None:
    """Every token within the window is where it was written, whatever came and went around it."""
    rng = random.Random(seed)
    window, block = rng.randint(1, 12), rng.randint(1, 5)
    pool = KvPool(replace(SPEC, sliding_window=window), 40, block, "fp32", "cpu")
    written = [0, 0, 0]
    for _ in range(150):
        request = rng.randrange(3)
        start, new = written[request], rng.choice((1, 1, 1, 2, 9))
        if rng.random() < 0.04:
            pool.free(request)
            written[request] = 0
            continue
        pool.ensure(request, start + new)
        mark = torch.arange(start, start + new).float() + 1000 * request
        keys = mark.view(-1, 1, 1).expand(-1, 4, 8)
        pool.write(0, torch.tensor(pool.slots(request, start, start + new)), keys, keys)
        reached = max(0, start - window + 1)
        got = pool.view(request, reached, start + new).layer(0)[0][0, 0, :, 0]
        assert got.tolist() == [float(1000 * request + p) for p in range(reached, start + new)]
        pool.slide(request, start + new)
        written[request] = start + new
    held = sum(-(-n // block) - max(0, n + 1 - window) // block for n in written)
    assert pool.used_blocks == held
