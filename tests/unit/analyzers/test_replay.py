"""What-if on runs whose true answer is known: the same load played under other limits."""

from __future__ import annotations

import dataclasses
import random

import pytest
from played_run import COST, back_to_back, play, replay_of, tokens_per_s
from step_rows import MS, NO_LIMITS, TINY, free_model, request, step

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.schedule import SchedulerConfig
from stallscope.analyzers.step.budget import cost_steps, measured_steps
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.whatif.replay import (
    LEAST_ERROR,
    Replay,
    WhatIf,
    build_replay,
    lift,
    try_config,
)
from stallscope.analyzers.whatif.simulate import Load, Overhead
from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import Subject

T = Thresholds()
ROOMY = SchedulerConfig(max_num_seqs=8, max_num_batched_tokens=512, num_blocks=999, block_size=4)
LENGTHS = [(12, 20)] * 16
TRUTH = Overhead(per_step=0.002, per_request=0.0005, per_token=0.00002)


def at_cap(cap: int, lengths: list[tuple[int, int]] = LENGTHS, clients: int = 8) -> Capture:
    config = dataclasses.replace(ROOMY, max_num_seqs=cap)
    return play(lengths, config, clients=clients, truth=TRUTH)


def tried(replay: Replay, config: SchedulerConfig, t: Thresholds = T) -> WhatIf:
    whatif = try_config(replay, config, t)
    assert whatif is not None
    return whatif


# Set-up


def test_limits_and_load_of_a_run() -> None:
    replay = replay_of(at_cap(2, [(12, 20), (5, 3)], clients=1))
    assert replay.config == dataclasses.replace(ROOMY, max_num_seqs=2)
    assert [(i, o) for _, i, o in replay.load.requests] == [(12, 20), (5, 3)]
    assert replay.load.concurrency == 1


def test_an_open_loop_keeps_its_arrivals_in_order_from_the_first() -> None:
    rows = (
        request(0, arrival_ns=900 * MS, input_tokens=4, output_tokens=2),
        request(1, arrival_ns=400 * MS, input_tokens=5, output_tokens=3),
        request(2, arrival_ns=500 * MS, input_tokens=6, output_tokens=0),  # never answered
    )
    subject = Subject(max_num_seqs=4, max_num_batched_tokens=64, kv_budget_bytes=768 * 16 * 10)
    capture = Capture(subject, steps=tuple(back_to_back((1.0, 1))), requests=rows)
    replay = replay_of(capture, free_model(), 1.0)
    assert replay.load == Load(((0.0, 5, 3), (pytest.approx(0.5), 4, 2)), None)
    # 2 x 3 layers x 2 heads x 16 x 2 bytes = 384 a token; blocks of 16 where nothing says more.
    assert (replay.config.num_blocks, replay.config.block_size) == (20, 16)
    assert replay.config.chunked_prefill


def test_a_long_run_is_replayed_in_part() -> None:
    # 100 x 1000 steps at a cap of one; halved until 20,000 are enough: 50, 25, 12 requests.
    capture = at_cap(1, [(1, 2)])
    rows = tuple(request(i, arrival_ns=i, output_tokens=1000) for i in range(100))
    replay = replay_of(dataclasses.replace(capture, requests=rows), measured=1.0)
    assert len(replay.load.requests) == 12
    assert replay.load.requests[-1][0] == pytest.approx(11e-9)


def test_no_replay_where_something_is_not_known() -> None:
    capture = at_cap(1)
    costs = cost_steps(measured_steps(capture), COST)

    def build(c: Capture = capture, **subject: None) -> Replay | None:
        c = dataclasses.replace(c, subject=dataclasses.replace(c.subject, **subject))
        return build_replay(c, costs, COST, 10.0)

    assert build() is not None
    assert build(max_num_seqs=None) is None
    assert build(max_num_batched_tokens=None) is None
    assert build(dataclasses.replace(capture, requests=())) is None
    assert build(dataclasses.replace(capture, requests=(request(0, output_tokens=0),))) is None
    assert build_replay(capture, costs, None, 10.0) is None
    assert build_replay(capture, costs, COST, None) is None
    assert build_replay(capture, [], COST, 10.0) is None
    blind = cost_steps([step(0, 1)], COST)
    assert build_replay(capture, blind, COST, 10.0) is None


# The gain


def test_gain_from_one_batch_size_holds_the_truth_within_its_error() -> None:
    before, after = at_cap(1), at_cap(8)
    gain = tried(replay_of(before), ROOMY).gain
    assert gain.before == tokens_per_s(before)
    assert gain.after > 2 * gain.before
    assert abs(gain.after - tokens_per_s(after)) <= gain.error * gain.after * 1.001
    assert gain.error > 0.1  # it must say that it does not know how overhead grows


def test_gain_from_several_batch_sizes_is_the_truth() -> None:
    lengths = [(12, 5 + 3 * (i % 6)) for i in range(24)]
    gain = tried(replay_of(at_cap(4, lengths)), ROOMY).gain
    assert gain.after == pytest.approx(tokens_per_s(at_cap(8, lengths)), rel=1e-3)
    assert gain.error == LEAST_ERROR  # never claimed to be nothing


@pytest.mark.parametrize("seed", range(10))
def test_gain_on_random_runs_is_within_its_error(seed: int) -> None:
    rng = random.Random(seed)
    lengths = [(rng.randint(1, 40), rng.randint(2, 40)) for _ in range(rng.randint(8, 24))]
    truth = Overhead(rng.uniform(0, 4e-3), rng.uniform(0, 1e-3), rng.uniform(0, 5e-5))
    config = dataclasses.replace(ROOMY, max_num_seqs=rng.randint(1, 3))
    clients = rng.randint(4, 8)
    before = play(lengths, config, clients=clients, truth=truth)
    after = play(lengths, ROOMY, clients=clients, truth=truth)
    gain = tried(replay_of(before), lift(replay_of(before), "seqs")).gain
    assert gain.before == pytest.approx(tokens_per_s(before))
    assert abs(gain.after - tokens_per_s(after)) <= (gain.error + 1e-3) * gain.after


def test_more_kv_room_ends_preemption() -> None:
    tight = dataclasses.replace(ROOMY, num_blocks=20)  # 80 tokens: two and a half of 31
    before = play(LENGTHS, tight, clients=8, truth=TRUTH)
    after = play(LENGTHS, ROOMY, clients=8, truth=TRUTH)
    gain = tried(replay_of(before), lift(replay_of(before), "kv")).gain
    assert gain.after == pytest.approx(tokens_per_s(after), rel=max(gain.error, 1e-3))
    assert gain.after > 1.5 * gain.before


def test_a_change_that_does_nothing_gains_nothing() -> None:
    replay = replay_of(at_cap(8))
    gain = tried(replay, dataclasses.replace(replay.config, num_blocks=5000)).gain
    assert gain.after == pytest.approx(gain.before)


def test_a_simulation_that_misses_the_run_says_so_in_its_error() -> None:
    capture = at_cap(1)
    replay = replay_of(capture, measured=tokens_per_s(capture) / 2)
    gain = tried(replay, ROOMY).gain
    # The simulated run is twice as fast as the one said to be measured; the ratio still moves it.
    assert gain.error == pytest.approx(1.0, abs=1e-3)
    assert gain.before == tokens_per_s(capture) / 2
    assert gain.after / gain.before == pytest.approx(
        tried(replay_of(capture), ROOMY).gain.after / tokens_per_s(capture), rel=1e-6
    )


def test_no_gain_where_the_load_could_not_run() -> None:
    assert try_config(replay_of(at_cap(1)), dataclasses.replace(ROOMY, num_blocks=1), T) is None


_ROWS = {"attention_pairs": 26, "logit_rows": 2, "kv_total_bytes": 999 * 4 * 384}


def cut_at_once(cap: int, ended: int) -> Capture:
    """Four clients of a run that was killed; those let in have made two of their 20 tokens."""
    subject = dataclasses.replace(at_cap(2).subject, max_num_seqs=cap, concurrency=4)
    rows = [
        request(i, arrival_ns=0, admitted_ns=0, end_ns=None, input_tokens=12, output_tokens=2)
        for i in range(2)
    ]
    rows += [
        request(i, arrival_ns=0, end_ns=None, input_tokens=12, output_tokens=0) for i in (2, 3)
    ]
    done = [
        request(i, arrival_ns=0, admitted_ns=0, end_ns=9 * MS, input_tokens=12, output_tokens=20)
        for i in range(4, 4 + ended)
    ]
    steps = tuple(
        step(10 * i, 10 * i + 10, decode_requests=2, context_tokens=26, **_ROWS) for i in range(2)
    )
    return dataclasses.replace(at_cap(2), subject=subject, requests=(*rows, *done), steps=steps)


def test_a_run_that_was_cut_at_once_is_raised_to_what_was_in_flight_without_a_gain() -> None:
    """Two of the four never had a token, yet it is they who wait for the cap."""
    cut = replay_of(cut_at_once(2, ended=0), measured=1.0)
    assert lift(cut, "seqs").max_num_seqs == 4
    assert try_config(cut, lift(cut, "seqs"), T) is None
    assert try_config(cut, dataclasses.replace(cut.config, num_blocks=5000), T) is None
    few = replay_of(cut_at_once(2, ended=3), measured=1.0)
    assert try_config(few, lift(few, "seqs"), T) is None
    enough = replay_of(cut_at_once(2, ended=4), measured=1.0)
    assert try_config(enough, lift(enough, "seqs"), T) is not None


def test_limits_that_hold_already_gain_nothing_to_speak_of() -> None:
    replay = replay_of(at_cap(8))
    assert lift(replay, "seqs") == replay.config
    assert try_config(replay, replay.config, T) is None


# What binds next


def test_the_next_limit_is_the_queue_that_remains() -> None:
    replay = replay_of(at_cap(1))
    assert tried(replay, dataclasses.replace(ROOMY, max_num_seqs=2)).next_limit == "scheduling"
    assert tried(replay, dataclasses.replace(ROOMY, num_blocks=16)).next_limit == "capacity"


@pytest.mark.parametrize(("overhead_s", "expected"), [(0.001, "bandwidth"), (0.010, None)])
def test_the_next_limit_is_a_resource_that_holds_the_step(
    overhead_s: float, expected: str | None
) -> None:
    # With all eight at once a step reads 290,816 B of weights at 100 MB/s, about 3 ms: most of the
    # step beside 1 ms of overhead, and less than the 0.40 that limits beside 10.
    tight = dataclasses.replace(ROOMY, max_num_seqs=4)
    capture = play([(1, 20)] * 8, tight, clients=8, truth=Overhead(per_step=overhead_s))
    assert tried(replay_of(capture), ROOMY).next_limit == expected


# Lifting


def test_lifting_goes_as_far_as_the_load_can_use() -> None:
    replay = replay_of(at_cap(2))
    assert lift(replay, "seqs") == dataclasses.replace(replay.config, max_num_seqs=8)
    assert lift(replay, "tokens") == dataclasses.replace(replay.config, max_num_batched_tokens=2048)
    # Two requests of 32 tokens at full length: 8 blocks each; there are more already.
    assert lift(replay, "kv") == replay.config
    tight = dataclasses.replace(replay, config=dataclasses.replace(replay.config, num_blocks=9))
    assert lift(tight, "kv").num_blocks == 16


def opened(replay: Replay, most: int) -> Replay:
    load = dataclasses.replace(replay.load, concurrency=None)
    return dataclasses.replace(replay, load=load, most_in_flight=most)


def test_lifting_an_open_loop_admits_all_that_were_in_flight_at_once() -> None:
    replay = replay_of(at_cap(2))
    assert lift(opened(replay, 5), "seqs").max_num_seqs == 5  # of 16 requests
    # Never lower than it was.
    high = dataclasses.replace(opened(replay, 5), config=dataclasses.replace(ROOMY, max_num_seqs=9))
    assert lift(high, "seqs").max_num_seqs == 9
    # Five requests of 32 tokens at full length, 8 blocks each.
    tight = dataclasses.replace(opened(replay, 5), config=dataclasses.replace(ROOMY, num_blocks=9))
    assert lift(tight, "kv").num_blocks == 40


def test_most_in_flight_is_counted_from_the_requests() -> None:
    """Three overlap; the fourth comes as the first ends, and the last never ends."""
    times = [(0, 10), (2, 20), (4, 20), (10, 15), (30, None)]
    rows = tuple(
        request(i, arrival_ns=a, end_ns=e, input_tokens=1, output_tokens=2)
        for i, (a, e) in enumerate(times)
    )
    replay = replay_of(dataclasses.replace(at_cap(1, [(1, 2)]), requests=rows), measured=1.0)
    assert replay.most_in_flight == 3


def test_blocks_are_those_of_one_devices_pool() -> None:
    # 384 bytes a token, half of them on each of two devices: 7,680 bytes hold 10 blocks of 4.
    subject = dataclasses.replace(at_cap(1).subject, kv_budget_bytes=7_680, num_devices=2)
    steps = (step(0, 1, decode_requests=1, context_tokens=1, attention_pairs=1),)
    rows = (request(0, input_tokens=4, output_tokens=2),)
    capture = Capture(subject, steps=steps, requests=rows)
    two = CostModel(TINY, "fp16", "fp16", dataclasses.replace(NO_LIMITS, ranks=2))
    assert replay_of(capture, two, 1.0).config.num_blocks == 10
    assert replay_of(capture, free_model(), 1.0).config.num_blocks == 5


def test_a_machine_whose_speed_moved_widens_the_error() -> None:
    replay = replay_of(at_cap(4, [(12, 5 + 3 * (i % 6)) for i in range(24)]))
    moved = dataclasses.replace(replay, drift=0.4)
    assert tried(replay, ROOMY).gain.error == LEAST_ERROR
    assert tried(moved, ROOMY).gain.error == 0.4
    assert tried(moved, ROOMY).gain.after == tried(replay, ROOMY).gain.after
