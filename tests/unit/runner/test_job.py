"""What a run refuses before it starts, and the limits it derives."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from stallscope.errors import InputError, UsageError
from stallscope.runner.job import describe, prepare
from stallscope.runner.options import RunOptions
from stallscope.runner.workload import ClosedLoop, OpenLoop

# tiny-26m in fp32: 2 · 6 layers · 4 KV heads · 64 · 4 bytes = 12,288 bytes per token, and 16
# tokens to a block.
BLOCK = 16 * 12_288
FREE = 1 << 40


def options(**changes: object) -> RunOptions:
    given = {"model": "tiny-26m", "capture": Path("never-written.sqlite"), **changes}
    return RunOptions(**given)  # type: ignore[arg-type]


def test_defaults_make_a_closed_loop_of_all_requests() -> None:
    job = prepare(options())
    assert isinstance(job.load, ClosedLoop)
    assert (len(job.load.sizes), job.load.concurrency) == (16, 16)
    assert job.block_bytes == BLOCK
    assert describe(job) == "16 requests (128 in, 64 out), all at once"
    apart = prepare(options(isolate_phases=True))
    assert describe(apart) == "16 requests (128 in, 64 out), all at once, phases isolated"


def test_half_width_kv_halves_the_blocks() -> None:
    assert prepare(options(kv_dtype="bf16")).block_bytes == BLOCK // 2
    assert prepare(options(dtype="fp16")).block_bytes == BLOCK // 2


@pytest.mark.parametrize(
    ("changes", "requests"),
    [
        ({}, 16),
        ({"requests": 100}, 64),
        ({"requests": 100, "concurrency": 8}, 16),
        ({"requests": 100, "concurrency": 8, "max_num_seqs": 1}, 8),
        ({"requests": 4, "max_num_seqs": 1}, 4),
        ({"requests": 100, "rate": 2.0, "max_num_seqs": 10}, 10),
    ],
)
def test_without_a_budget_the_pool_holds_what_could_run(
    changes: dict[str, object], requests: int
) -> None:
    # 128 + 64 - 1 = 191 tokens of a whole request: 12 blocks.
    assert prepare(options(**changes)).scheduler_config(FREE).num_blocks == 12 * requests


def test_the_default_pool_takes_a_quarter_of_the_free_memory_at_most() -> None:
    assert prepare(options()).scheduler_config(4 * 20 * BLOCK).num_blocks == 20


def test_a_budget_is_rounded_down_to_whole_blocks() -> None:
    # 8 MiB / 196,608 = 42.67 blocks.
    assert prepare(options(kv_budget=8 << 20)).scheduler_config(FREE).num_blocks == 42


def test_a_budget_below_one_request_is_refused_with_the_number() -> None:
    with pytest.raises(UsageError, match=f"give --kv-budget {12 * BLOCK} or more"):
        prepare(options(kv_budget=12 * BLOCK - 1))
    assert prepare(options(kv_budget=12 * BLOCK)).scheduler_config(FREE).num_blocks == 12


def test_too_little_memory_for_one_request_is_refused_too() -> None:
    with pytest.raises(UsageError, match="too small for one whole request"):
        prepare(options()).scheduler_config(4 * BLOCK)


def test_the_longest_context_is_allowed_and_one_more_is_not() -> None:
    prepare(options(input_tokens="4000", output_tokens="96"))
    with pytest.raises(UsageError, match=r"4097 tokens.*longer than tiny-26m allows \(4096\)"):
        prepare(options(input_tokens="4000", output_tokens="97"))


def test_unchunked_prefill_needs_room_for_a_recomputed_request() -> None:
    short = options(chunked_prefill=False, max_num_batched_tokens=190)
    with pytest.raises(UsageError, match="give --max-num-batched-tokens 191 or more"):
        prepare(short)
    prepare(options(chunked_prefill=False, max_num_batched_tokens=191))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input_tokens": "0"}, "--input-tokens '0'"),
        ({"output_tokens": "0:5"}, "--output-tokens '0:5'"),
        ({"requests": 0}, "--requests 0: give at least 1"),
        ({"concurrency": -1}, "--concurrency -1"),
        ({"max_num_seqs": 0}, "--max-num-seqs 0"),
        ({"block_size": 0}, "--block-size 0"),
        ({"kv_budget": 0}, "--kv-budget 0"),
        ({"warmup": -1}, "--warmup -1"),
        ({"rate": 0.0}, "--rate 0.0"),
        ({"rate": float("nan")}, "--rate nan"),
        ({"temperature": float("nan")}, "--temperature nan"),
        ({"top_p": 0.0}, "--top-p 0.0"),
        ({"dtype": "int8"}, "--dtype int8 is not built yet: choose fp32, bf16, fp16"),
        ({"kv_dtype": "int4"}, "--kv-dtype int4 is not built yet"),
        ({"dtype": "float"}, "--dtype float: choose"),
        ({"device": "tpu"}, "--device tpu"),
        ({"engine": "vllm"}, "--engine vllm: choose builtin or transformers"),
        ({"rate": 1.0, "concurrency": 2}, "--concurrency and --rate exclude each other"),
        ({"rate": 1.0, "isolate_phases": True}, "follows no arrival times: leave --rate out"),
        ({"trace": Path("x"), "isolate_phases": True}, "leave --trace out"),
        ({"eos": (8192,)}, "--eos 8192: tiny-26m has tokens 0 to 8191"),
    ],
)
def test_what_cannot_be_is_refused_by_option(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        prepare(options(**changes))


STATIC = {"engine": "transformers", "requests": 5, "input_tokens": "100", "output_tokens": "9"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"chunked_prefill": True}, "cannot honour --chunked-prefill: leave"),
        ({"kv_budget": 1 << 20}, "cannot honour --kv-budget"),
        ({"block_size": 16}, "cannot honour --block-size"),
        ({"kv_dtype": "bf16"}, "cannot honour --kv-dtype"),
        ({"kv_budget": 1, "block_size": 1}, "honour --kv-budget, --block-size: leave"),
        ({"max_num_batched_tokens": 99}, "100 tokens: give --max-num-batched-tokens 100 or more"),
    ],
)
def test_what_a_static_batch_cannot_do_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        prepare(options(**STATIC | changes))


def test_a_static_batch_is_held_by_no_pool() -> None:
    job = prepare(options(**STATIC, chunked_prefill=False, kv_dtype="fp32", max_num_seqs=3))
    config = job.scheduler_config(free_bytes=0)
    assert (config.static, config.chunked_prefill, config.block_size) == (True, False, 1)
    assert config.num_blocks == 3 * 108  # three whole requests, the last tokens left out
    assert job.block_bytes == 12_288


def test_a_trace_replaces_lengths_and_times(tmp_path: Path) -> None:
    trace = tmp_path / "day.jsonl"
    trace.write_text('{"arrival_s": 0.5, "input_tokens": 3, "output_tokens": 2}\n')
    job = prepare(options(trace=trace))
    assert isinstance(job.load, OpenLoop)
    assert job.load.times_ns == (500_000_000,)
    assert describe(job) == "1 request of day.jsonl"


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(InputError, match="tiny-27m"):
        prepare(options(model="tiny-27m"))


def test_a_window_bounds_what_a_request_needs(tmp_path: Path) -> None:
    """tiny-26m's shape with a window of 64 tokens; blocks of 16."""
    shape = json.loads(
        (resources.files("stallscope.profiler.data.models") / "tiny-26m.json").read_text()
    )
    shape |= {"model_type": "mistral", "sliding_window": 64}
    config = tmp_path / "config.json"
    config.write_text(json.dumps(shape))
    given = {"model": str(config), "input_tokens": "300", "output_tokens": "100", "requests": 2}
    # Steps of 32 tokens: 63 + 32 + 15 = 110 tokens from the worst place in a block: 7 blocks.
    job = prepare(options(**given, max_num_batched_tokens=32))
    assert job.scheduler_config(FREE).num_blocks == 2 * 7
    assert job.scheduler_config(FREE).sliding_window == 64
    with pytest.raises(UsageError, match=f"give --kv-budget {7 * BLOCK} or more"):
        prepare(options(**given, max_num_batched_tokens=32, kv_budget=7 * BLOCK - 1))


def test_isolated_phases_within_a_sliding_window(tmp_path: Path) -> None:
    data = resources.files("stallscope.profiler.data.models") / "tiny-26m.json"
    shape = json.loads(data.read_text()) | {"model_type": "mistral", "sliding_window": 32}
    config = tmp_path / "config.json"
    config.write_text(json.dumps(shape))
    given = {"model": str(config), "isolate_phases": True, "input_tokens": "16"}
    prepare(options(**given, output_tokens="17"))  # the last token never enters the cache
    with pytest.raises(UsageError, match="keeps 32 tokens"):
        prepare(options(**given, output_tokens="18"))
