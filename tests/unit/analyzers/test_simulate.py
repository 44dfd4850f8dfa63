"""Small loads worked out step by step; without limits of the machine a step takes one second."""

from __future__ import annotations

import dataclasses
import random

import pytest
from played_run import COST, play, tokens_per_s
from step_rows import free_model

from stallscope.analyzers.cost.operators import StepShape, decode_shape, prefill_shape
from stallscope.analyzers.schedule import ScheduledChunk, SchedulerConfig, StepPlan
from stallscope.analyzers.static_schedule import StaticScheduler
from stallscope.analyzers.whatif.simulate import Load, Overhead, Simulated, shape_of, simulate

SECOND = Overhead(per_step=1.0)
ROOMY = SchedulerConfig(max_num_seqs=8, max_num_batched_tokens=1000, num_blocks=1000, block_size=1)


def run(load: Load, overhead: Overhead = SECOND, **limits: int | bool) -> Simulated:
    config = dataclasses.replace(ROOMY, **limits)  # type: ignore[arg-type]
    return simulate(load, config, free_model(), overhead)


def test_one_request() -> None:
    # A prefill that samples the first token, and two decodes.
    result = run(Load(((5.0, 4, 3),)))
    assert (result.duration_s, result.output_tokens) == (3.0, 3)
    assert (result.ttft_s, result.tpot_s) == ([1.0], [1.0])
    assert result.output_tokens_per_s == 1.0
    assert (result.queued_share, result.blocked) == (0.0, {})


def test_a_single_token_has_no_tpot() -> None:
    result = run(Load(((0.0, 4, 1),)))
    assert (result.ttft_s, result.tpot_s) == ([1.0], [])


FOUR = ((0.0, 4, 2),) * 4


def test_closed_loop_of_two_clients_at_cap_1() -> None:
    result = run(Load(FOUR, concurrency=2), max_num_seqs=1)
    # Two steps a request, one after the other: 8 s. The second client's first request waits for
    # the first to end, and so does every later one for the one before it.
    assert result.duration_s == 8.0
    assert result.ttft_s == [1.0, 3.0, 3.0, 3.0]
    # One waits in steps 1 to 6 and none in 7 and 8; time in the system is 2 + 4 + 4 + 4 s.
    assert result.waited_s == 6.0
    assert result.in_system_s == 14.0
    assert result.queued_share == pytest.approx(6 / 14)
    assert result.blocked == {"seqs": 6.0}


def test_closed_loop_of_two_clients_at_cap_2() -> None:
    result = run(Load(FOUR, concurrency=2), max_num_seqs=2)
    assert (result.duration_s, result.output_tokens_per_s) == (4.0, 2.0)
    assert result.ttft_s == [1.0, 1.0, 1.0, 1.0]
    assert (result.queued_share, result.blocked) == (0.0, {})


def test_a_static_batch_of_two_waits_for_its_longer_request() -> None:
    requests = ((0.0, 4, 1), (0.0, 4, 3), (0.0, 4, 2))
    result = run(Load(requests, concurrency=2), max_num_seqs=2, static=True, chunked_prefill=False)
    # 0 and 1 prefill together; 0 ends after 1 s, and the next request waits 2 s for 1 to end.
    assert (result.duration_s, result.output_tokens) == (5.0, 6)
    assert result.ttft_s == [1.0, 1.0, 3.0]
    assert (result.waited_s, result.blocked) == (2.0, {"batch": 2.0})
    continuous = run(Load(requests, concurrency=2), max_num_seqs=2)
    assert continuous.duration_s == 3.0  # it joins in the second step


def test_a_static_batch_s_shape_holds_its_padding() -> None:
    plan = StaticScheduler(dataclasses.replace(ROOMY, static=True))
    plan.add(0, 4, 1)
    plan.add(1, 1, 1)
    assert shape_of(plan.schedule()) == prefill_shape(4, requests=2)


def test_a_closed_loop_ignores_arrivals_and_spare_clients() -> None:
    late = tuple((100.0, i, o) for _, i, o in FOUR)
    assert run(Load(late, concurrency=9)).duration_s == 2.0


def test_open_loop_idles_until_the_next_arrival() -> None:
    result = run(Load(((10.0, 4, 2), (20.0, 4, 2))))
    assert result.duration_s == 12.0  # 10 to 22
    assert result.ttft_s == [1.0, 1.0]
    assert result.in_system_s == 4.0


def test_an_arrival_within_a_step_waits_for_its_end() -> None:
    result = run(Load(((0.0, 4, 2), (0.25, 4, 1))))
    # The second is seen at 1.0 and has its token at 2.0.
    assert sorted(result.ttft_s) == [1.0, 1.75]
    assert result.waited_s == 0.75
    assert result.in_system_s == 2.0 + 1.75
    assert result.blocked == {}  # under no limit


def test_arrivals_are_taken_in_time_order() -> None:
    result = run(Load(((3.0, 4, 1), (0.0, 4, 1))), max_num_seqs=1)
    assert result.ttft_s == [1.0, 1.0]
    assert result.duration_s == 4.0


def test_preemption_is_recomputed_and_waits_for_kv() -> None:
    # Two of 2 in and 3 out over six one-token blocks: 2 + 2, then 3 + 3, then the first needs a
    # fourth block. The second goes back to the queue for one step and prefills 2 + 2 again.
    load = Load(((0.0, 2, 3), (0.0, 2, 3)))
    result = run(load, num_blocks=6)
    assert (result.duration_s, result.output_tokens) == (4.0, 6)
    assert result.blocked == {"kv": 1.0}
    assert (result.waited_s, result.in_system_s) == (1.0, 7.0)
    # 2 + 2 prompt tokens and 4 again, at a quarter of a second.
    slow = run(load, Overhead(per_step=1.0, per_token=0.25), num_blocks=6)
    assert slow.duration_s == 6.0
    assert run(load).duration_s == 3.0


def test_the_token_budget_holds_back() -> None:
    load = Load(((0.0, 4, 2), (0.0, 4, 1), (0.0, 4, 1)))
    result = run(load, max_num_batched_tokens=5)
    # Step 1: 4 + 1 of the second; 2: decode, 3 of the second (sampling), 1 of the third; 3: the
    # rest of the third. The third waits in step 1 alone.
    assert result.duration_s == 3.0
    assert result.blocked == {"tokens": 1.0}
    assert result.ttft_s == [1.0, 2.0, 3.0]


def test_overhead_by_step_request_and_prompt_token() -> None:
    # Steps: prefill of 4 (one request), two decodes: 3 x 1 + 3 x 0.5 + 4 x 0.25.
    each = Overhead(per_step=1.0, per_request=0.5, per_token=0.25)
    assert run(Load(((0.0, 4, 3),)), each).duration_s == 5.5


def test_the_machine_sets_the_floor() -> None:
    result = simulate(Load(((0.0, 3, 3),)), ROOMY, COST, Overhead())
    # Prefill of three tokens, then decodes over four and five keys.
    times = [COST.step_time(s) for s in (prefill_shape(3), decode_shape(1, 4), decode_shape(1, 5))]
    assert result.duration_s == pytest.approx(sum(t.floor for t in times))
    assert result.parts["bandwidth"] == pytest.approx(sum(t.weights + t.kv for t in times))
    assert result.parts["compute"] == pytest.approx(sum(t.compute for t in times))
    assert sum(result.parts.values()) == pytest.approx(result.duration_s)


def test_shape_of_a_plan() -> None:
    chunks = (
        ScheduledChunk(0, start=9, tokens=1, is_prefill=False, samples=True),
        ScheduledChunk(1, start=2, tokens=3, is_prefill=True, samples=False),
    )
    # Ten keys; then 3, 4 and 5 keys.
    assert shape_of(StepPlan(chunks, (), (), None)) == StepShape(4, 1, 15, 22)
    # In a window of 4: four keys; then 3, 4 and 4 of keys 0 … 4.
    assert shape_of(StepPlan(chunks, (), (), None), 4) == StepShape(4, 1, 9, 15)


def test_what_could_never_run_is_an_error() -> None:
    with pytest.raises(ValueError, match="KV blocks"):
        run(Load(((0.0, 8, 2),)), num_blocks=4)


def test_an_empty_load_takes_no_time() -> None:
    result = run(Load(()))
    assert (result.duration_s, result.output_tokens_per_s, result.queued_share) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("seed", range(12))
def test_random_closed_loops_as_played_by_hand(seed: int) -> None:
    rng = random.Random(seed)
    lengths = [(rng.randint(1, 40), rng.randint(1, 30)) for _ in range(rng.randint(1, 14))]
    config = SchedulerConfig(
        max_num_seqs=rng.randint(1, 6),
        max_num_batched_tokens=rng.randint(70, 120),
        num_blocks=rng.randint(20, 60),
        block_size=4,
        chunked_prefill=rng.random() < 0.5,
    )
    clients = rng.randint(1, 8)
    truth = Overhead(rng.uniform(0, 2e-3), rng.uniform(0, 1e-3), rng.uniform(0, 1e-4))
    played = play(lengths, config, clients=clients, truth=truth)
    load = Load(tuple((0.0, i, o) for i, o in lengths), clients)
    result = simulate(load, config, COST, truth)
    assert result.output_tokens == sum(o for _, o in lengths)
    assert result.output_tokens_per_s == pytest.approx(tokens_per_s(played), rel=1e-4)
    ttft = [(r.first_token_ns or 0) - r.arrival_ns for r in played.requests]
    assert sorted(result.ttft_s) == pytest.approx(sorted(t * 1e-9 for t in ttft), abs=1e-5)
    # Time in the system is what the requests themselves say (Little's law).
    lives = [((r.end_ns or 0) - r.arrival_ns) * 1e-9 for r in played.requests]
    assert result.in_system_s == pytest.approx(sum(lives), abs=1e-5)
    assert 0.0 <= result.queued_share < 1.0


def test_random_open_loops_obey_littles_law() -> None:
    rng = random.Random(2)
    for _ in range(20):
        requests = tuple(
            (rng.uniform(0, 30), rng.randint(1, 20), rng.randint(2, 9))
            for _ in range(rng.randint(1, 12))
        )
        result = run(Load(requests), max_num_seqs=rng.randint(1, 3))
        # With room for everything a request waits, prefills in one step and decodes in the next.
        wait = sum(result.ttft_s) - len(requests)
        assert result.waited_s == pytest.approx(wait, abs=1e-9)
        decoding = sum(outputs - 1 for _, _, outputs in requests)
        assert result.in_system_s == pytest.approx(sum(result.ttft_s) + decoding)
        assert result.tpot_s == pytest.approx([1.0] * len(requests))
