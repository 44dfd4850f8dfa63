"""The engine's loop on a fake clock: every row is worked out by hand from the clock's rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from engine_bench import MS, Bench, events, sizes

from stallscope.analyzers.schedule import SchedulerConfig
from stallscope.profiler.capture import Request, Step
from stallscope.profiler.capture_file import read_capture
from stallscope.runner.engine import Outcome
from stallscope.runner.out_of_memory import AllocationFailed
from stallscope.runner.workload import ClosedLoop, OpenLoop


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Bench]:
    def make(**limits: int | bool) -> Bench:
        defaults = {
            "max_num_seqs": 4,
            "max_num_batched_tokens": 16,
            "num_blocks": 8,
            "block_size": 4,
        }
        return Bench(tmp_path / "run.sqlite", SchedulerConfig(**{**defaults, **limits}))  # type: ignore[arg-type]

    return make


def test_every_column_of_a_prefill_and_a_decode(bench: Callable[..., Bench]) -> None:
    capture = bench().run(ClosedLoop(sizes((6, 2)), concurrency=1))
    # Prefill of 6 tokens: forward 5 + 6 ms, 2 ms more. 6 tokens take 2 blocks of 4: 80 bytes.
    # Pairs: 1 + 2 + … + 6 = 21.
    prefill = Step(
        id=0,
        rank=0,
        start_ns=100 * MS,
        end_ns=113 * MS,
        device_ns=11 * MS,
        host_ns=2 * MS,
        phase="prefill",
        warmup=False,
        prefill_requests=1,
        prefill_tokens=6,
        decode_requests=0,
        context_tokens=6,
        waiting=0,
        running=1,
        kv_used_bytes=80,
        kv_total_bytes=320,
        attention_pairs=21,
        logit_rows=1,
        blocked_by=None,
        padded_tokens=0,
        padded_context_tokens=0,
        padded_pairs=0,
    )
    # Decode of the 7th token: forward 5 + 1 ms, 2 ms more; it attends to 7 keys.
    decode = prefill._replace(
        id=1,
        start_ns=113 * MS,
        end_ns=121 * MS,
        device_ns=6 * MS,
        phase="decode",
        prefill_requests=0,
        prefill_tokens=0,
        decode_requests=1,
        context_tokens=7,
        attention_pairs=7,
    )
    assert capture.steps == (prefill, decode)
    assert capture.requests == (
        Request(0, 100 * MS, 100 * MS, 113 * MS, 121 * MS, 6, 0, 2, 0, 0, "finished"),
    )
    assert [(token.request, token.t_ns) for token in capture.tokens] == [
        (0, 113 * MS),
        (0, 121 * MS),
    ]


def test_the_four_stages_of_the_kv_cache(bench: Callable[..., Bench]) -> None:
    capture = bench().run(ClosedLoop(sizes((7, 3)), concurrency=1))
    # 7 + 2 = 9 tokens end up in the cache: 2 blocks at first, a third for the ninth.
    assert [(e.t_ns // MS, e.kind, e.request, dict(e.data)) for e in capture.events] == [
        (100, "admit", 0, {}),
        (100, "kv_alloc", 0, {"blocks": 2, "bytes": 80}),
        (114, "kv_init", 0, {"tokens": 7, "bytes": 70}),
        (122, "kv_append", None, {"tokens": 1, "bytes": 10}),
        (122, "kv_read", None, {"tokens": 8, "bytes": 80}),
        (122, "kv_alloc", 0, {"blocks": 1, "bytes": 40}),
        (130, "kv_append", None, {"tokens": 1, "bytes": 10}),
        (130, "kv_read", None, {"tokens": 9, "bytes": 90}),
        (130, "kv_free", 0, {"blocks": 3, "bytes": 120}),
    ]


def test_mixed_steps_count_both_parts(bench: Callable[..., Bench]) -> None:
    capture = bench(num_blocks=32).run(ClosedLoop(sizes((4, 9), (20, 1)), concurrency=2))
    first, second = capture.steps[:2]
    # Budget 16: request 0's 4 tokens and 12 of request 1's 20, then one decode and the last 8.
    assert (first.phase, first.prefill_requests, first.prefill_tokens) == ("prefill", 2, 16)
    assert (first.context_tokens, first.logit_rows) == (4 + 12, 1)
    assert first.attention_pairs == 4 * 5 // 2 + 12 * 13 // 2
    assert (second.phase, second.prefill_tokens, second.decode_requests) == ("mixed", 8, 1)
    assert (second.context_tokens, second.logit_rows) == (5 + 20, 2)
    assert second.attention_pairs == 5 + (8 * 12 + 8 * 9 // 2)


def test_the_executor_gets_prompt_then_its_own_tokens(bench: Callable[..., Bench]) -> None:
    b = bench()
    answers = iter((11, 12, 13))
    b.executor.answer = lambda chunk: next(answers)
    b.run(ClosedLoop(sizes((5, 3)), concurrency=1))
    prompt, second, third = ([c.token_ids for c in chunks] for chunks in b.executor.seen)
    assert len(prompt[0]) == 5
    assert all(0 <= token < 50 for token in prompt[0])
    assert (second, third) == ([[11]], [[12]])
    assert b.executor.freed == [0]


def test_closed_loop_queue_and_sequence_cap(bench: Callable[..., Bench]) -> None:
    capture = bench(max_num_seqs=1).run(ClosedLoop(sizes((4, 1), (4, 1), (4, 1)), concurrency=2))
    # Each request is one step of 5 + 4 + 2 = 11 ms. The third arrives as the first ends.
    assert [(r.arrival_ns // MS, r.admitted_ns, r.end_ns) for r in capture.requests] == [
        (100, 100 * MS, 111 * MS),
        (100, 111 * MS, 122 * MS),
        (111, 122 * MS, 133 * MS),
    ]
    assert [(s.waiting, s.blocked_by) for s in capture.steps] == [
        (1, "seqs"),
        (1, "seqs"),
        (0, None),
    ]


def test_open_loop_idles_between_arrivals_and_counts_ttft_from_them(
    bench: Callable[..., Bench],
) -> None:
    load = OpenLoop(sizes((4, 1), (4, 1), (4, 1)), times_ns=(20 * MS, 25 * MS, 90 * MS))
    capture = bench().run(load)
    # Origin 100. The first starts at 120 and takes 11 ms; the second came at 125, in mid-step,
    # and starts where that step ends; then the engine sleeps until 190.
    assert [(s.start_ns // MS, s.end_ns // MS) for s in capture.steps] == [
        (120, 131),
        (131, 142),
        (190, 201),
    ]
    assert [(r.arrival_ns // MS, r.admitted_ns, r.first_token_ns) for r in capture.requests] == [
        (120, 120 * MS, 131 * MS),
        (125, 131 * MS, 142 * MS),
        (190, 190 * MS, 201 * MS),
    ]


def test_an_injected_delay_moves_host_time_by_exactly_itself(bench: Callable[..., Bench]) -> None:
    load = sizes((6, 4), (3, 5))
    plain = bench()
    without = plain.run(ClosedLoop(load, concurrency=2))
    plain.path.unlink()
    slow = bench()
    slow.before_step = lambda: slow.clock.sleep(0.003)
    delayed = slow.run(ClosedLoop(load, concurrency=2))
    assert len(without.steps) == len(delayed.steps) == 5
    for a, b in zip(without.steps, delayed.steps, strict=True):
        assert b.host_ns == a.host_ns + 3_000_000
        assert b.device_ns == a.device_ns
        assert b.end_ns - b.start_ns == a.end_ns - a.start_ns + 3_000_000


def test_what_a_step_fetches_is_a_copy_in_it(bench: Callable[..., Bench]) -> None:
    slow = bench()

    def fetch() -> int:
        slow.clock.sleep(0.003)
        return 4096

    slow.fetch = fetch
    capture = slow.run(ClosedLoop(sizes((6, 4)), concurrency=1))
    assert [(e.t_ns, dict(e.data)) for e in events(capture, "copy")] == [
        (step.start_ns, {"bytes": 4096, "length_ns": 3_000_000, "in_forward": 0})
        for step in capture.steps
    ]
    # 2 ms of sampling beside it are the host's: the row holds both.
    assert [step.host_ns for step in capture.steps] == [5_000_000] * 4


def test_preemption_is_told_in_events_and_times(bench: Callable[..., Bench]) -> None:
    # The scheduler's own test works this plan out: 4 blocks of 4, two prompts of 7, request 1
    # goes out in the third step and comes back when request 0 has ended.
    b = bench(num_blocks=4)
    capture = b.run(ClosedLoop(sizes((7, 6), (7, 6)), concurrency=2))
    # Step 1: 5 + 14 + 2 = 21 ms, 100 to 121. Step 2: 5 + 2 + 2 = 9 ms, to 130. At 130 it is
    # preempted; request 0 needs four more steps of 8 ms: to 162, when request 1 comes back.
    (preempt,) = events(capture, "preempt")
    assert (preempt.t_ns, preempt.request, preempt.data) == (130 * MS, 1, {"tokens": 8})
    first, second = capture.requests
    assert (first.preemptions, first.preempted_ns, first.end_ns) == (0, 0, 162 * MS)
    assert (second.preemptions, second.preempted_ns) == (1, 32 * MS)
    assert (second.admitted_ns, second.first_token_ns) == (100 * MS, 121 * MS)
    # Back at 162 with 9 tokens (16 ms), then 3 decodes of 8 ms.
    assert second.end_ns == (162 + 16 + 24) * MS
    assert [e.t_ns // MS for e in events(capture, "admit") if e.request == 1] == [100, 162]
    balance = sum(e.data["bytes"] for e in events(capture, "kv_alloc"))
    balance -= sum(e.data["bytes"] for e in events(capture, "kv_free"))
    assert balance == 0
    assert b.executor.freed == [1, 0, 1]
    assert b.recorder.engine_state.kv_used_bytes == 0


def test_end_of_sequence_token_ends_a_request(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.eos = frozenset({7})
    b.executor.answer = lambda chunk: 7 if chunk.start == 5 else 3
    capture = b.run(ClosedLoop(sizes((4, 8)), concurrency=1))
    # Samples after 4 (prompt), 5 and 6 cached tokens; the third, made from position 5, is EOS.
    assert [(r.output_tokens, r.status) for r in capture.requests] == [(3, "finished")]


def test_warmup_leaves_steps_and_nothing_else(bench: Callable[..., Bench]) -> None:
    capture = bench().run(
        ClosedLoop(sizes((4, 2)), concurrency=1),
        ClosedLoop(sizes((4, 1)), concurrency=1),
        warmup=True,
    )
    assert [(s.id, s.warmup, s.phase) for s in capture.steps] == [
        (0, True, "prefill"),
        (1, True, "decode"),
        (2, False, "prefill"),
    ]
    assert [r.output_tokens for r in capture.requests] == [1]
    assert len(capture.tokens) == 1
    assert {e.t_ns // MS for e in capture.events} == {119, 130}


def test_refused_memory_ends_the_run_and_keeps_what_ran(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.executor.error = AllocationFailed("step", 4096, "no room")
    b.executor.fails_at_step = 2
    capture = b.run(ClosedLoop(sizes((4, 1), (4, 9)), concurrency=2))
    assert b.outcome == Outcome(finished=1, out_of_memory=True)
    assert len(capture.steps) == 2
    (oom,) = events(capture, "oom")
    # Steps: 5 + 8 + 2 = 15 ms, then 5 + 1 + 2 = 8 ms.
    assert (oom.t_ns, oom.data) == (
        123 * MS,
        {"stage": "step", "bytes": 4096, "message": "no room"},
    )
    assert [(r.status, r.end_ns) for r in capture.requests] == [
        ("finished", 115 * MS),
        ("failed", None),
    ]


def test_any_other_error_is_recorded_and_passes_on(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.executor.error = RuntimeError("shapes differ")
    b.executor.fails_at_step = 1
    with pytest.raises(RuntimeError, match="shapes differ"):
        b.run(ClosedLoop(sizes((4, 3)), concurrency=1))
    capture = read_capture(b.path)
    errors = events(capture, "error")
    assert [(e.data["type"], e.data["message"]) for e in errors] == [
        ("RuntimeError", "shapes differ")
    ]
    assert [r.status for r in capture.requests] == ["failed"]


def test_a_window_bounds_what_is_held_read_and_counted(bench: Callable[..., Bench]) -> None:
    """Window 6, blocks of 4: a prompt of 10, then tokens at 10 … 13."""
    capture = bench(sliding_window=6).run(ClosedLoop(sizes((10, 5)), concurrency=1))
    rows = [(e.kind, dict(e.data)) for e in events(capture, "kv_alloc", "kv_free", "kv_read")]
    read = ("kv_read", {"tokens": 6, "bytes": 60})
    one = {"blocks": 1, "bytes": 40}
    assert rows == [
        ("kv_alloc", {"blocks": 3, "bytes": 120}),
        ("kv_free", one),  # the token at 10 needs 5 … 10: block 0 is past
        read,
        read,
        ("kv_alloc", one),  # for the token at 12
        read,
        ("kv_free", one),  # the token at 13 needs 8 … 13
        read,
        ("kv_free", {"blocks": 2, "bytes": 80}),
    ]
    # The prompt: 1 + 2 + … + 6 pairs, then 6 for each of four tokens; all ten keys are read.
    work = [(s.context_tokens, s.attention_pairs) for s in capture.steps]
    assert work == [(10, 21 + 4 * 6)] + 4 * [(6, 6)]
    assert [s.kv_used_bytes for s in capture.steps] == [120, 80, 80, 120, 80]
