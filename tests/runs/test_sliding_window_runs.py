"""Real runs within a sliding window: the same tokens however served, the formula's bytes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from stallscope.analyzers.kv_life import allocated_rows, kv_rows
from stallscope.analyzers.schedule import Scheduler, SchedulerConfig
from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.models import load_model
from stallscope.profiler.recorder import Recorder
from stallscope.runner.batch import Chunk, StepResult
from stallscope.runner.decoder import Decoder, build_decoder
from stallscope.runner.engine import Engine, Generation
from stallscope.runner.engine_log import EngineLog
from stallscope.runner.executor import TorchExecutor
from stallscope.runner.kv_pool import KvPool
from stallscope.runner.run import RunOptions, run
from stallscope.runner.workload import ClosedLoop, RequestSize

pytestmark = pytest.mark.slow

WINDOW = 12
TOKEN = 2 * 2 * 2 * 16 * 4  # K and V, 2 layers, 2 KV heads of 16, fp32


@pytest.fixture
def model(tmp_path: Path) -> Path:
    shape = {
        "model_type": "mistral",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 997,
        "max_position_embeddings": 256,
        "sliding_window": WINDOW,
    }
    folder = tmp_path / "windowed"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(shape))
    return folder


class Audited:
    """Passes steps on, keeps what was sampled, and holds pool and scheduler to each other."""

    def __init__(self, executor: TorchExecutor, scheduler: Scheduler) -> None:
        self.executor = executor
        self.scheduler = scheduler
        self.kv_bytes_per_token = executor.kv_bytes_per_token
        self.heard: dict[int, list[int]] = {}
        self.stretches = 0

    def execute(self, chunks: Sequence[Chunk]) -> StepResult:
        pool = self.executor.pool
        ends = {chunk.request: chunk.start + len(chunk.token_ids) for chunk in chunks}
        result = self.executor.execute(chunks)
        for request, token in result.tokens.items():
            self.heard.setdefault(request, []).append(token)
        for request, end in ends.items():
            view = pool.view(request, max(0, end - WINDOW + 1), end)
            self.stretches = max(self.stretches, len(view.stretches))
        # The scheduler has not yet given back what the pool just has: of these requests only.
        given = sum(
            self.scheduler.config.past_blocks(end) - self.scheduler.config.past_blocks(chunk.start)
            for chunk, end in zip(chunks, ends.values(), strict=True)
        )
        assert pool.used_blocks == self.scheduler.used_blocks - given
        return result

    def free(self, request: int) -> None:
        self.executor.free(request)


def serve(
    path: Path, decoder: Decoder, *, blocks: int, budget: int, chunked: bool = True
) -> tuple[Capture, Audited]:
    config = SchedulerConfig(8, budget, blocks, 4, chunked, sliding_window=WINDOW)
    pool = KvPool(decoder.spec, blocks, 4, "fp32", "cpu")
    scheduler = Scheduler(config)
    executor = Audited(TorchExecutor(decoder, pool), scheduler)
    engine = Engine(scheduler, executor, generation=Generation(decoder.spec.vocab_size, seed=3))
    sizes = [RequestSize(10 + 7 * i, 30) for i in range(5)]
    with Recorder(path, sample_hz=0) as recorder:
        log = EngineLog(recorder, config, token_bytes=executor.kv_bytes_per_token)
        engine.run(ClosedLoop(sizes, concurrency=5), log)
    assert pool.used_blocks == 0
    return read_capture(path), executor


def total(capture: Capture, kind: str, key: str = "bytes") -> int:
    return sum(event.data[key] for event in capture.events if event.kind == kind)


def test_tokens_do_not_depend_on_how_they_were_served(model: Path, tmp_path: Path) -> None:
    decoder = build_decoder(load_model(str(model)), seed=1)
    roomy, plain = serve(tmp_path / "a.sqlite", decoder, blocks=64, budget=512)
    tight, pressed = serve(tmp_path / "b.sqlite", decoder, blocks=8, budget=16)
    split, chunked = serve(tmp_path / "c.sqlite", decoder, blocks=9, budget=7)
    whole, unchunked = serve(tmp_path / "d.sqlite", decoder, blocks=17, budget=67, chunked=False)
    assert sum(r.preemptions or 0 for r in roomy.requests) == 0
    assert sum(r.preemptions or 0 for r in tight.requests) > 0
    assert sum(s.phase == "mixed" for s in split.steps) > 0
    assert max(pressed.stretches, chunked.stretches) > 1  # the pool was fragmented
    assert plain.heard == pressed.heard == chunked.heard == unchunked.heard
    assert all(len(tokens) == 30 for tokens in plain.heard.values())
    assert len(set(itertools.chain(*plain.heard.values()))) > 20
    for capture in (roomy, tight, split, whole):
        assert total(capture, "kv_alloc") == total(capture, "kv_free") > 0


def test_a_runs_bytes_are_the_formulas(model: Path, tmp_path: Path) -> None:
    options = RunOptions(
        model=str(model),
        capture=tmp_path / "run.sqlite",
        input_tokens="20",
        output_tokens="12",
        requests=2,
        concurrency=2,
        warmup=1,
        block_size=4,
    )
    capture = read_capture(run(options))
    assert capture.subject.model is not None
    assert capture.subject.model.sliding_window == WINDOW
    # 20 + 11 tokens are written; each of the 11 decodes reads the window's 12.
    assert total(capture, "kv_init") == 2 * 20 * TOKEN
    assert total(capture, "kv_append") == 2 * 11 * TOKEN
    assert total(capture, "kv_read") == 2 * 11 * 12 * TOKEN
    decodes = [s for s in capture.steps if s.phase == "decode" and not s.warmup]
    assert {(s.context_tokens, s.attention_pairs) for s in decodes} == {(24, 24)}
    # All of the prompt at once: 5 blocks of 4. A token at p then reaches back to p - 11: in steps
    # that begin a block the window lies on three blocks, else on four.
    held = [(s.kv_used_bytes or 0) // (2 * 4 * TOKEN) for s in capture.steps if not s.warmup]
    assert held == [5, 3 + 1] + [3 if p % 4 == 3 else 4 for p in range(21, 31)]
    pool = next(e.data for e in capture.events if e.kind == "kv_pool")
    assert pool["bytes"] == pool["tokens"] * TOKEN
    # The formula counts tokens, the pool whole blocks, cut at both ends of the window.
    for row in allocated_rows(capture):
        if row.seq_len > 20:
            (formula,) = kv_rows(capture.subject.model, "fp32", (row.seq_len,))
            assert formula.bytes == WINDOW * TOKEN
            assert formula.bytes <= row.bytes <= formula.bytes + 4 * TOKEN


def test_head_norms_run(model: Path, tmp_path: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    config |= {"model_type": "qwen3", "head_dim": 32}
    (model / "config.json").write_text(json.dumps(config))
    options = RunOptions(
        str(model), tmp_path / "run.sqlite", input_tokens="20", output_tokens="6", requests=2
    )
    capture = read_capture(run(options))
    assert [r.status for r in capture.requests] == ["finished"] * 2
    assert capture.subject.model is not None
    assert capture.subject.model.qk_norm
    assert capture.subject.model.sliding_window is None  # qwen3 has it off unless told
