"""Isolated phases for real, on a CPU: long stretches, the same tokens every time."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from listening import Listening

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.isolated import NOTE
from stallscope.analyzers.schedule import Scheduler, SchedulerConfig, Scheduling
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.models import load_model
from stallscope.profiler.recorder import Recorder
from stallscope.runner.decoder import Decoder, build_decoder
from stallscope.runner.engine import Engine, Generation
from stallscope.runner.engine_log import EngineLog
from stallscope.runner.executor import TorchExecutor
from stallscope.runner.isolated_phases import IsolatedPhases
from stallscope.runner.kv_pool import KvPool
from stallscope.runner.run import RunOptions, run
from stallscope.runner.workload import ClosedLoop, RequestSize

pytestmark = pytest.mark.slow

LIMITS = SchedulerConfig(max_num_seqs=2, max_num_batched_tokens=16, num_blocks=32, block_size=4)


def test_a_run_of_isolated_phases(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    options = RunOptions(
        "tiny-26m",
        path,
        input_tokens="32",
        output_tokens="6",
        requests=2,
        warmup=1,
        isolate_phases=True,
    )
    capture = read_capture(run(options))
    steps = [s for s in capture.steps if not s.warmup]
    stretches = [list(g) for _, g in itertools.groupby(steps, key=lambda s: s.phase)]
    assert [(s[0].phase, s[-1].end_ns - s[0].start_ns >= 2_000_000_000) for s in stretches] == [
        ("prefill", True),
        ("decode", True),
    ]
    assert {s.prefill_tokens for s in stretches[0]} == {64}
    # Five decode steps a pass over 33 to 37 keys of each, however many passes.
    contexts = [s.context_tokens for s in stretches[1]]
    assert contexts == [66, 68, 70, 72, 74] * (len(contexts) // 5)
    moved = {
        kind: sum(e.data["bytes"] for e in capture.events if e.kind == kind)
        for kind in ("kv_alloc", "kv_free")
    }
    # 37 tokens of 12,288 bytes in blocks of 16: three blocks each.
    assert moved == {"kv_alloc": 2 * 3 * 16 * 12_288, "kv_free": 2 * 3 * 16 * 12_288}
    assert [(r.status, r.output_tokens) for r in capture.requests] == [("finished", 6)] * 2
    assert len(capture.tokens) == 12
    found = diagnose(capture)
    assert (NOTE in found.notes, found.latency) == (True, {})


def heard(path: Path, decoder: Decoder, planner: Scheduling) -> dict[int, list[int]]:
    pool = KvPool(decoder.spec, LIMITS.num_blocks, LIMITS.block_size, "fp32", "cpu")
    executor = Listening(TorchExecutor(decoder, pool))
    engine = Engine(planner, executor, generation=Generation(decoder.spec.vocab_size, seed=3))
    sizes = [RequestSize(10 + 9 * i, 3 + 4 * i) for i in range(3)]
    with Recorder(path, sample_hz=0) as recorder:
        log = EngineLog(recorder, LIMITS, token_bytes=executor.kv_bytes_per_token)
        engine.run(ClosedLoop(sizes, concurrency=3), log)
    assert pool.used_blocks == 0
    return executor.heard


def test_repeated_passes_say_what_the_served_request_says(tmp_path: Path) -> None:
    decoder = build_decoder(load_model("tiny-26m"), seed=1)
    served = heard(tmp_path / "served.sqlite", decoder, Scheduler(LIMITS))
    # The clock is read as a stretch begins and at the end of each pass: three passes.
    planner = IsolatedPhases(LIMITS, clock=itertools.count().__next__, least_ns=3)
    apart = heard(tmp_path / "apart.sqlite", decoder, planner)
    # Each prefill pass says the first token, each decode pass all the others.
    assert {len(tokens) for tokens in served.values()} == {3, 7, 11}
    assert apart == {r: [tokens[0]] * 3 + tokens[1:] * 3 for r, tokens in served.items()}
