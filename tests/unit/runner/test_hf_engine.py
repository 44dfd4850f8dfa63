"""The transformers engine in its loop: the builtin's tokens and counts, padding, its KV cache."""

from __future__ import annotations

from pathlib import Path

import pytest
from hf_pair import CONFIGS, LLAMA, SEED, TOKEN, EnginePair, write_config

from stallscope.analyzers.schedule import SchedulerConfig
from stallscope.analyzers.static_schedule import StaticScheduler
from stallscope.profiler.recorder import Recorder
from stallscope.runner.engine import Engine, Generation
from stallscope.runner.hf_executor import HfExecutor
from stallscope.runner.static_log import StaticLog
from stallscope.runner.workload import ClosedLoop, RequestSize


@pytest.fixture
def llama(tmp_path: Path) -> EnginePair:
    return EnginePair(write_config(tmp_path, LLAMA))


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(
    ("sizes", "cap"),
    [
        pytest.param([(20, 12), (7, 9), (33, 1)], 1, id="one-at-a-time"),
        pytest.param([(17, 10)] * 4, 8, id="one-full-batch"),
    ],
)
def test_tokens_steps_and_counts_are_the_builtin_s(
    name: str, sizes: list[tuple[int, int]], cap: int, tmp_path: Path
) -> None:
    pair = EnginePair(write_config(tmp_path, CONFIGS[name]))
    ours = pair.builtin(sizes, max_num_seqs=cap)
    theirs = pair.transformers(sizes, max_num_seqs=cap)
    assert theirs.tokens == ours.tokens
    assert [len(tokens) for tokens in theirs.tokens.values()] == [size[1] for size in sizes]
    columns = ("phase", "prefill_requests", "prefill_tokens", "decode_requests", "context_tokens")
    columns += ("attention_pairs", "logit_rows", "padded_tokens", "padded_pairs", "blocked_by")
    columns += ("waiting", "running")
    for column in columns:
        assert [getattr(s, column) for s in theirs.steps] == [
            getattr(s, column) for s in ours.steps
        ], column
    for kind in ("kv_init", "kv_append", "kv_read"):
        assert theirs.total(kind) == ours.total(kind) > 0
        assert theirs.total(kind, "tokens") == ours.total(kind, "tokens")


@pytest.mark.parametrize("name", CONFIGS)
def test_padding_changes_no_token(name: str, tmp_path: Path) -> None:
    pair = EnginePair(write_config(tmp_path, CONFIGS[name]))
    sizes = [(20, 3), (3, 12), (33, 7), (1, 9)]
    theirs = pair.transformers(sizes)
    assert theirs.tokens == pair.builtin(sizes).tokens
    assert theirs.steps[0].padded_tokens == 4 * 33 - (20 + 3 + 33 + 1)


def test_padding_by_hand_and_as_planned(llama: EnginePair) -> None:
    served = llama.transformers([(4, 2), (1, 3), (2, 1)])
    # As in the scheduler's own test: what the forward pass was given says the same.
    names = ("phase", "padded_tokens", "logit_rows", "padded_context_tokens", "padded_pairs")
    assert [tuple(getattr(s, name) for name in names) for s in served.steps] == [
        ("prefill", 5, 3, 5, 16),
        ("decode", 1, 3, 8, 8),
        ("decode", 2, 3, 15, 15),
    ]
    assert [s.context_tokens for s in served.steps] == [7, 7, 3]


def test_the_cache_s_own_bytes_until_the_batch_is_over(llama: EnginePair) -> None:
    served = llama.transformers([(4, 2), (1, 3), (2, 1)], max_num_seqs=2)
    # Two rows of 4 tokens, then 5, then 6; then the third request's row of 2.
    held = [2 * 4 * TOKEN, 2 * 5 * TOKEN, 2 * 6 * TOKEN, 2 * TOKEN]
    assert [s.kv_used_bytes for s in served.steps] == held
    assert {s.kv_total_bytes for s in served.steps} == {None}
    assert served.total("kv_alloc") == served.total("kv_free") == held[2] + held[3]
    frees = [e for e in served.capture.events if e.kind == "kv_free"]
    assert [e.t_ns for e in frees] == [served.steps[2].end_ns, served.steps[3].end_ns]
    assert served.total("kv_init") == (8 + 2) * TOKEN  # 3 of the 8 are padding
    assert served.total("kv_init", "padding") == 3
    assert served.total("kv_read") == held[1] + held[2]
    assert served.total("kv_read", "padding") == (10 - 7) + (12 - 3)


def test_who_comes_later_waits_for_the_whole_batch(llama: EnginePair) -> None:
    served = llama.transformers([(4, 2), (4, 6), (4, 1)], max_num_seqs=2)
    assert [s.blocked_by for s in served.steps] == ["seqs", "seqs", *["batch"] * 4, None]
    third = served.capture.requests[2]
    assert third.admitted_ns == served.steps[5].end_ns
    assert [r.status for r in served.capture.requests] == ["finished"] * 3


def test_steps_abut_and_hold_their_parts(llama: EnginePair) -> None:
    steps = llama.transformers([(9, 4), (3, 7)], max_num_seqs=1).steps
    assert [a.end_ns for a in steps[:-1]] == [b.start_ns for b in steps[1:]]
    for step in steps:
        assert step.device_ns is not None
        assert step.host_ns is not None
        assert step.device_ns + step.host_ns == step.end_ns - step.start_ns
        assert min(step.device_ns, step.host_ns) > 0


def test_an_end_of_sequence_token_ends_a_request_and_its_row_is_padding(llama: EnginePair) -> None:
    sizes = [(9, 6), (5, 6)]
    plain = llama.transformers(sizes).tokens
    eos = next(token for token in plain[0][:3] if token not in plain[1])
    ends = plain[0].index(eos) + 1
    executor = HfExecutor(llama.hf_model())
    config = SchedulerConfig(8, 512, 1, static=True)
    path = llama.folder / "eos.sqlite"
    with Recorder(path, sample_hz=0) as recorder:
        generation = Generation(97, SEED, frozenset({eos}))
        engine = Engine(StaticScheduler(config), executor, generation=generation)
        log = StaticLog(recorder, executor, warmup=True)
        engine.run(ClosedLoop([RequestSize(*size) for size in sizes], 2), log)
    from stallscope.profiler.capture_file import read_capture

    capture = read_capture(path)
    assert [s.padded_tokens for s in capture.steps] == [4, *[0] * (ends - 1), *[1] * (6 - ends)]
    assert all(s.warmup for s in capture.steps)
    assert (capture.requests, capture.tokens, capture.events) == ((), (), ())
