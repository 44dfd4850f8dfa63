"""The same functions on every device: on the CPU everywhere, on CUDA where there is one."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import ModelSpec
from stallscope.runner.batch import Chunk
from stallscope.runner.decoder import build_decoder
from stallscope.runner.executor import TorchExecutor
from stallscope.runner.kv_pool import KvPool
from stallscope.runner.out_of_memory import AllocationFailed
from stallscope.runner.probe_products import ROWS, probe_launch, probe_products
from stallscope.runner.stopwatch import stopwatch

SPEC = ModelSpec("small", 64, 128, 2, 4, 2, 16, 256, 256)
WIDE = ModelSpec("wide", 32, 16384, 1, 4, 4, 8, 50, 4096)
RUN = "run --model tiny-26m --requests 2 --input-tokens 32 --output-tokens 4 --warmup 0"
MIB = 1 << 20

each_device = pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
)


def executor_on(device: str, spec: ModelSpec, blocks: int = 32) -> TorchExecutor:
    return TorchExecutor(
        build_decoder(spec, device=device), KvPool(spec, blocks, 16, "fp32", device)
    )


@each_device
def test_forward_time_lies_within_the_call(device: str) -> None:
    executor = executor_on(device, SPEC)
    executor.execute([Chunk(0, [1, 2, 3], 0, True)])  # kernels are loaded at their first use
    start_ns = time.perf_counter_ns()
    result = executor.execute([Chunk(1, [4, 5, 6], 0, True)])
    assert 0 < result.forward_ns <= time.perf_counter_ns() - start_ns


@each_device
def test_transformers_has_the_builtin_decoder_s_tokens(device: str) -> None:
    from stallscope.runner.hf_executor import HfExecutor
    from stallscope.runner.hf_model import load_hf_model

    spec = load_model("tiny-26m")
    model = load_hf_model("tiny-26m", spec, folder=None, dtype="fp32", device=device, seed=0)
    tokens = [list(range(5, 25)), [7, 8, 9]]
    made: list[dict[int, int]] = []
    for executor in (executor_on(device, spec), HfExecutor(model)):
        known = [list(prompt) for prompt in tokens]
        start = [0, 0]
        for _ in range(6):
            chunks = [Chunk(i, known[i][start[i] :], start[i], True) for i in (0, 1)]
            start = [len(row) for row in known]
            result = executor.execute(chunks)
            assert result.forward_ns > 0
            made.append(result.tokens)
            for i in (0, 1):
                known[i].append(result.tokens[i])
    assert made[:6] == made[6:]


@each_device
def test_stopwatch_times_the_work_between_marks(device: str) -> None:
    left = torch.full((1024, 1024), 0.5, device=device)
    watch = stopwatch(device)
    start_s = time.perf_counter()
    for passes in (0, 1, 20):
        watch.mark()
        for _ in range(passes):
            left @ left
    watch.mark()
    nothing_s, one_s, twenty_s = watch.intervals_s()
    assert nothing_s + one_s + twenty_s <= time.perf_counter() - start_s
    assert 0 <= nothing_s < twenty_s


@each_device
def test_refused_kv_cache_and_weights_tell_their_stage(device: str) -> None:
    with pytest.raises(AllocationFailed) as caught:
        KvPool(SPEC, 1 << 36, 16, "fp32", device)
    assert caught.value.stage == "kv"
    # 2^36 blocks of 16 tokens; 2 x 2 layers x 2 heads x 16 x 4 bytes a token
    assert caught.value.bytes_requested == (1 << 40) * 512
    with pytest.raises(AllocationFailed) as caught:
        build_decoder(replace(SPEC, vocab_size=1 << 41), device=device)
    assert caught.value.stage == "weights"


@pytest.mark.gpu
def test_refused_step_on_cuda_and_the_executor_goes_on() -> None:
    executor = executor_on("cuda", WIDE, blocks=512)
    executor.execute([Chunk(0, [1] * 8, 0, True)])
    torch.cuda.empty_cache()
    _, total = torch.cuda.mem_get_info()
    room = (torch.cuda.memory_reserved() + 256 * MIB) / total
    torch.cuda.set_per_process_memory_fraction(room)
    try:
        with pytest.raises(AllocationFailed) as caught:  # gate and up: 4000 x 32768 x 4 bytes
            executor.execute([Chunk(1, [1] * 4000, 0, True)])
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert caught.value.stage == "step"
    assert len(executor.execute([Chunk(0, [1], 8, True)]).tokens) == 1


@each_device
@pytest.mark.slow
def test_a_whole_run(device: str, tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    command = [sys.executable, "-m", "stallscope", *RUN.split(), "--device", device]
    done = subprocess.run([*command, "--capture", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    capture = read_capture(path)
    assert sum(request.output_tokens or 0 for request in capture.requests) == 2 * 4
    assert capture.steps
    for step in capture.steps:
        assert step.device_ns is not None
        assert 0 < step.device_ns <= step.end_ns - step.start_ns


@each_device
def test_products_and_launches_of_the_machine_are_timed(device: str) -> None:
    found = probe_products("fp32", device, shapes=((512, 512),))
    assert [p.rows for p in found] == list(ROWS)[: len(found)]
    assert all(p.time_s > 0 for p in found)
    assert 0 < probe_launch(device) < 1e-3
