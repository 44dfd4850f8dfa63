"""The KV cache's life in real runs: what is recorded equals the formula, whatever is preempted."""

from __future__ import annotations

from pathlib import Path

import pytest
from listening import Listening

from stallscope.analyzers.schedule import Scheduler, SchedulerConfig
from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.models import load_model
from stallscope.profiler.recorder import Recorder
from stallscope.runner.decoder import Decoder, build_decoder
from stallscope.runner.engine import Engine, Generation
from stallscope.runner.engine_log import EngineLog
from stallscope.runner.executor import TorchExecutor
from stallscope.runner.kv_pool import KvPool
from stallscope.runner.run import RunOptions, run
from stallscope.runner.workload import ClosedLoop, RequestSize

pytestmark = pytest.mark.slow

TOKEN = 2 * 6 * 4 * 64 * 4  # K and V, 6 layers, 4 KV heads of 64, fp32
BLOCK = 16 * TOKEN


def total(capture: Capture, kind: str, key: str) -> int:
    return sum(event.data[key] for event in capture.events if event.kind == kind)


def test_four_stages_in_bytes(tmp_path: Path) -> None:
    capture = read_capture(
        run(
            RunOptions(
                model="tiny-26m",
                capture=tmp_path / "run.sqlite",
                input_tokens="20",
                output_tokens="6",
                requests=4,
                concurrency=2,
                warmup=1,
            )
        )
    )
    assert [r.status for r in capture.requests] == ["finished"] * 4
    assert [r.output_tokens for r in capture.requests] == [6] * 4
    # Two waves of two. Each request writes 20 tokens, then five: the sixth never enters. Its
    # decodes read 21 … 25 keys.
    assert total(capture, "kv_init", "bytes") == 4 * 20 * TOKEN
    assert total(capture, "kv_append", "bytes") == 4 * 5 * TOKEN
    assert total(capture, "kv_read", "bytes") == 4 * (21 + 22 + 23 + 24 + 25) * TOKEN
    assert total(capture, "kv_alloc", "bytes") == 4 * 2 * BLOCK  # 25 tokens in blocks of 16
    assert total(capture, "kv_free", "bytes") == total(capture, "kv_alloc", "bytes")
    decodes = [s for s in capture.steps if s.phase == "decode" and not s.warmup]
    assert [s.context_tokens for s in decodes] == [42, 44, 46, 48, 50] * 2
    reads = [event.data["bytes"] for event in capture.events if event.kind == "kv_read"]
    assert reads == [TOKEN * (s.context_tokens or 0) for s in decodes]


def test_steps_abut_and_hold_their_parts(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    options = RunOptions("tiny-26m", path, input_tokens="8:40", output_tokens="1:9", concurrency=3)
    capture = read_capture(run(options))
    steps = [s for s in capture.steps if not s.warmup]
    assert [a.end_ns for a in steps[:-1]] == [b.start_ns for b in steps[1:]]
    for step in steps:
        assert step.device_ns is not None
        assert step.host_ns is not None
        assert step.device_ns + step.host_ns == step.end_ns - step.start_ns
        assert step.device_ns > 0
        assert step.host_ns > 0
    assert {s.id for s in capture.steps} == set(range(len(capture.steps)))
    made = sum(r.output_tokens for r in capture.requests)
    assert made == len(capture.tokens) == sum(s.logit_rows or 0 for s in steps)


def serve(path: Path, decoder: Decoder, *, blocks: int, budget: int) -> tuple[Capture, Listening]:
    config = SchedulerConfig(
        max_num_seqs=8, max_num_batched_tokens=budget, num_blocks=blocks, block_size=4
    )
    pool = KvPool(decoder.spec, blocks, 4, "fp32", "cpu")
    executor = Listening(TorchExecutor(decoder, pool))
    engine = Engine(
        Scheduler(config), executor, generation=Generation(decoder.spec.vocab_size, seed=3)
    )
    sizes = [RequestSize(10 + 3 * i, 14) for i in range(5)]
    with Recorder(path, sample_hz=0) as recorder:
        log = EngineLog(recorder, config, token_bytes=executor.kv_bytes_per_token)
        engine.run(ClosedLoop(sizes, concurrency=5), log)
    assert pool.used_blocks == 0
    return read_capture(path), executor


def test_preempted_and_chunked_requests_say_the_same(tmp_path: Path) -> None:
    decoder = build_decoder(load_model("tiny-26m"), seed=1)
    roomy, plain = serve(tmp_path / "roomy.sqlite", decoder, blocks=64, budget=512)
    tight, pressed = serve(tmp_path / "tight.sqlite", decoder, blocks=14, budget=512)
    chunked, split = serve(tmp_path / "chunked.sqlite", decoder, blocks=14, budget=7)
    assert [r.preemptions for r in roomy.requests] == [0] * 5
    assert sum(r.preemptions or 0 for r in tight.requests) >= 2
    assert sum(r.preempted_ns or 0 for r in tight.requests) > 0
    assert sum(s.phase == "mixed" for s in chunked.steps) >= 2
    assert plain.heard == pressed.heard == split.heard
    assert all(len(tokens) == 14 for tokens in plain.heard.values())
    for capture in (roomy, tight, chunked):
        assert total(capture, "kv_alloc", "bytes") == total(capture, "kv_free", "bytes") > 0
