"""Stretches of one phase each on a fake clock: steps, rows and KV worked out by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_bench import MS, Bench, Clock, events, sizes

from stallscope.analyzers.schedule import SchedulerConfig, StepPlan
from stallscope.profiler.capture import Capture
from stallscope.runner.engine import Outcome
from stallscope.runner.isolated_phases import IsolatedPhases
from stallscope.runner.out_of_memory import AllocationFailed
from stallscope.runner.workload import ClosedLoop

LIMITS = SchedulerConfig(max_num_seqs=4, max_num_batched_tokens=16, num_blocks=8, block_size=4)
Make = Callable[..., Bench]


@pytest.fixture
def bench(tmp_path: Path) -> Make:
    def make(least_ns: int = 40 * MS) -> Bench:
        def planner(config: SchedulerConfig, clock: Clock) -> IsolatedPhases:
            return IsolatedPhases(config, clock=clock, least_ns=least_ns)

        return Bench(tmp_path / "run.sqlite", LIMITS, planner=planner)

    return make


def stretches(capture: Capture) -> list[tuple[str, int, int]]:
    """Phase, steps and length in ms of each run of steps of one phase."""
    grouped = itertools.groupby(capture.steps, key=lambda s: s.phase)
    found = [(phase, list(steps)) for phase, steps in grouped]
    return [(p, len(s), (s[-1].end_ns - s[0].start_ns) // MS) for p, s in found]


def test_each_stretch_is_whole_passes_until_it_is_long_enough(bench: Make) -> None:
    capture = bench().run(ClosedLoop(sizes((6, 3), (4, 2)), concurrency=2))
    # A prefill pass is one step of 10 tokens: 5 + 10 + 2 = 17 ms. A decode pass is one step of two
    # tokens (9 ms) and one of request 0 alone (8 ms): 17 ms. 40 ms take three passes of each.
    assert stretches(capture) == [("prefill", 3, 51), ("decode", 6, 51)]
    assert [s.context_tokens for s in capture.steps] == [10] * 3 + [7 + 5, 8] * 3
    assert [s.decode_requests for s in capture.steps] == [0] * 3 + [2, 1] * 3
    assert [s.warmup for s in capture.steps] == [False] * 9


def test_a_pass_that_is_repeated_computes_the_same_and_counts_once(bench: Make) -> None:
    b = bench()
    answers = itertools.count(10)  # a sampler that never answers the same
    b.executor.answer = lambda chunk: next(answers)
    capture = b.run(ClosedLoop(sizes((6, 3), (4, 2)), concurrency=2))
    prefills = [[c.token_ids for c in chunks] for chunks in b.executor.seen[:3]]
    assert prefills[0] == prefills[1] == prefills[2]
    # Prefill passes answer 10 to 15; the first two stay. The first decode pass feeds them.
    passes = [
        [[c.token_ids for c in chunks] for chunks in b.executor.seen[i : i + 2]] for i in (3, 5, 7)
    ]
    assert passes == [[[[10], [11]], [[16]]]] * 3
    assert [(t.request, t.t_ns // MS) for t in capture.tokens] == [
        (0, 117),
        (1, 117),
        (0, 160),
        (1, 160),
        (0, 168),
    ]


def test_requests_keep_their_first_times_and_end_with_their_wave(bench: Make) -> None:
    capture = bench().run(ClosedLoop(sizes((6, 3), (4, 2)), concurrency=2))
    assert [
        (r.arrival_ns // MS, (r.admitted_ns or 0) // MS, (r.first_token_ns or 0) // MS)
        for r in capture.requests
    ] == [(100, 100, 117)] * 2
    assert [(r.end_ns, r.output_tokens, r.preemptions, r.status) for r in capture.requests] == [
        (202 * MS, 3, 0, "finished"),
        (202 * MS, 2, 0, "finished"),
    ]


def test_kv_is_taken_once_written_again_and_given_back(bench: Make) -> None:
    b = bench()
    capture = b.run(ClosedLoop(sizes((6, 3), (4, 2)), concurrency=2))
    # 6 tokens take two blocks of 4, which hold the 8 of the end too; request 1's fifth takes one.
    assert [
        (e.t_ns // MS, e.kind, e.request, e.data["blocks"])
        for e in events(capture, "kv_alloc", "kv_free")
    ] == [
        (100, "kv_alloc", 0, 2),
        (100, "kv_alloc", 1, 1),
        (151, "kv_alloc", 1, 1),
        (202, "kv_free", 0, 2),
        (202, "kv_free", 1, 2),
    ]
    assert [e.data["tokens"] for e in events(capture, "kv_init")] == [6, 4] * 3
    assert [e.data["tokens"] for e in events(capture, "kv_append")] == [2, 1] * 3
    assert [e.data["tokens"] for e in events(capture, "kv_read")] == [12, 8] * 3
    # In blocks of 4 tokens of 10 bytes.
    assert [s.kv_used_bytes for s in capture.steps] == [3 * 40] * 3 + [4 * 40] * 6
    assert b.recorder.engine_state.kv_used_bytes == 0
    assert b.executor.freed == [0, 1]


@pytest.mark.parametrize(("least_ns", "passes"), [(51 * MS, 3), (51 * MS + 1, 4), (0, 1)])
def test_the_length_is_reached_and_no_pass_more(bench: Make, least_ns: int, passes: int) -> None:
    capture = bench(least_ns).run(ClosedLoop(sizes((6, 3), (4, 2)), concurrency=2))
    assert stretches(capture) == [
        ("prefill", passes, 17 * passes),
        ("decode", 2 * passes, 17 * passes),
    ]


def test_by_default_a_stretch_lasts_two_seconds(tmp_path: Path) -> None:
    b = Bench(
        tmp_path / "run.sqlite", LIMITS, planner=lambda c, clock: IsolatedPhases(c, clock=clock)
    )
    capture = b.run(ClosedLoop(sizes((6, 3), (4, 2)), concurrency=2))
    # 2,000 / 17 = 117.6 passes
    assert stretches(capture) == [("prefill", 118, 2006), ("decode", 236, 2006)]


def test_clients_send_again_when_their_wave_has_ended(bench: Make) -> None:
    capture = bench().run(ClosedLoop(sizes((6, 3), (4, 2), (6, 3)), concurrency=2))
    # The third arrives at 202. Alone: 13 ms a prefill pass, four of them; 16 ms a decode pass,
    # three of them.
    assert stretches(capture)[2:] == [("prefill", 4, 52), ("decode", 6, 48)]
    assert [(r.arrival_ns // MS, r.end_ns) for r in capture.requests][2] == (202, 302 * MS)


def test_one_token_needs_no_decode(bench: Make) -> None:
    capture = bench().run(ClosedLoop(sizes((6, 1)), concurrency=1))
    assert stretches(capture) == [("prefill", 4, 52)]
    assert [(r.output_tokens, r.status) for r in capture.requests] == [(1, "finished")]


def test_an_output_that_ends_early_does_so_in_every_pass(bench: Make) -> None:
    b = bench()
    b.eos = frozenset({7})
    answers = iter([1, 2, 3, 4, 7])  # four prefill passes, the first decode
    b.executor.answer = lambda chunk: next(answers, 9)
    capture = b.run(ClosedLoop(sizes((6, 8)), concurrency=1))
    # One decode step of 8 ms a pass instead of seven.
    assert stretches(capture) == [("prefill", 4, 52), ("decode", 5, 40)]
    assert [r.output_tokens for r in capture.requests] == [2]
    assert {c.token_ids[0] for chunks in b.executor.seen[4:] for c in chunks} == {1}


def test_refused_memory_ends_the_run_and_keeps_what_ran(bench: Make) -> None:
    b = bench()
    b.executor.error = AllocationFailed("step", 4096, "no room")
    b.executor.fails_at_step = 4
    capture = b.run(ClosedLoop(sizes((6, 3), (4, 2)), concurrency=2))
    assert b.outcome == Outcome(finished=0, out_of_memory=True)
    assert stretches(capture) == [("prefill", 3, 51), ("decode", 1, 9)]
    assert [(r.status, r.output_tokens) for r in capture.requests] == [("failed", 2)] * 2


def plans(planner: IsolatedPhases, count: int) -> list[StepPlan]:
    """Take steps, each executed before the next."""
    found = []
    for _ in range(count):
        found.append(planner.schedule())
        planner.complete(found[-1])
    return found


def planned(*requests: tuple[int, int], **limits: int | bool) -> IsolatedPhases:
    """A planner with these requests queued; on its clock everything takes long enough."""
    defaults = {"max_num_seqs": 4, "max_num_batched_tokens": 16, "num_blocks": 8, "block_size": 4}
    config = SchedulerConfig(**{**defaults, **limits})  # type: ignore[arg-type]
    planner = IsolatedPhases(config, clock=itertools.count(step=10**10).__next__)
    for index, (inputs, outputs) in enumerate(requests):
        planner.add(index, inputs, outputs)
    return planner


@pytest.mark.parametrize(
    ("limits", "waves"),
    [
        ({}, [(0, 1, 2)]),
        ({"num_blocks": 5}, [(0, 1), (2,)]),  # 6 + 3 − 1 = 8 tokens at full length: two blocks each
        ({"max_num_seqs": 1}, [(0,), (1,), (2,)]),
        ({"max_num_batched_tokens": 2}, [(0, 1), (2,)]),  # a decode step holds no more
    ],
)
def test_a_wave_is_what_fits(limits: dict[str, int], waves: list[tuple[int, ...]]) -> None:
    planner = planned((6, 3), (6, 3), (6, 3), **limits)
    found = []
    while planner.in_flight:
        (plan,) = plans(planner, 1)
        found += [plan.admitted] if plan.admitted else []
        assert planner.used_blocks <= planner.config.num_blocks
    assert found == waves
    assert planner.used_blocks == 0


@pytest.mark.parametrize(
    ("is_chunked", "steps"),
    [
        (True, [[(0, 0, 6), (1, 0, 2)], [(1, 2, 2), (2, 0, 5)]]),
        (False, [[(0, 0, 6)], [(1, 0, 4)], [(2, 0, 5)]]),  # 6 + 4 and 4 + 5 are more than 8
    ],
)
def test_prompts_keep_to_the_token_budget(
    is_chunked: bool, steps: list[list[tuple[int, int, int]]]
) -> None:
    requests = ((6, 2), (4, 2), (5, 2))
    planner = planned(*requests, max_num_batched_tokens=8, chunked_prefill=is_chunked)
    found = plans(planner, len(steps) + 1)
    assert [[(c.request, c.start, c.tokens) for c in p.chunks] for p in found[:-1]] == steps
    assert [[c.samples for c in p.chunks] for p in found[:2]] == (
        [[True, False], [True, True]] if is_chunked else [[True], [True]]
    )
    assert [(c.is_prefill, c.tokens) for c in found[-1].chunks] == [(False, 1)] * 3


def test_what_no_wave_could_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit in 8 blocks"):
        planned((30, 4))  # 33 tokens at full length, room for 32
    planned((30, 3))
    with pytest.raises(ValueError, match="longer than a step may be"):
        planned((17, 2), chunked_prefill=False)
    planned((17, 2))
