"""Refused allocations, real ones where a CPU can refuse them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from stallscope.profiler.spec import ModelSpec
from stallscope.runner.decoder import build_decoder
from stallscope.runner.kv_pool import KvPool
from stallscope.runner.out_of_memory import AllocationFailed, out_of_memory

SPEC = ModelSpec("oom", 32, 64, 1, 4, 4, 8, 50, 256)

# Beyond a 47-bit address space, so that no kernel grants it on trust.
TOO_MANY_TOKENS = 2**40


def test_kv_cache_too_large() -> None:
    with pytest.raises(AllocationFailed, match="out of memory at stage kv") as caught:
        KvPool(SPEC, TOO_MANY_TOKENS // 16, 16, "fp32", "cpu")
    assert caught.value.stage == "kv"
    assert caught.value.bytes_requested == 2**40 * 256  # 2 x 1 layer x 4 heads x 8 x 4 bytes
    assert "can't allocate memory" in caught.value.message


def test_weights_too_large() -> None:
    with pytest.raises(AllocationFailed) as caught:
        build_decoder(replace(SPEC, vocab_size=2**41))
    assert caught.value.stage == "weights"
    assert caught.value.bytes_requested == 2**41 * 32 * 4  # the embedding comes first


STEP_TOO_LARGE = """
import resource, torch
from stallscope.profiler.spec import ModelSpec
from stallscope.runner.batch import Chunk
from stallscope.runner.decoder import build_decoder
from stallscope.runner.executor import TorchExecutor
from stallscope.runner.kv_pool import KvPool
from stallscope.runner.out_of_memory import AllocationFailed

spec = ModelSpec("oom", 32, 16384, 1, 4, 4, 8, 50, 4096)
executor = TorchExecutor(build_decoder(spec), KvPool(spec, 256, 16, "fp32", "cpu"))
executor.execute([Chunk(0, [1] * 8, 0, True)])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), -1))
try:
    executor.execute([Chunk(1, [1] * 4000, 0, True)])  # gate and up: 4000 x 32768 x 4 bytes
except AllocationFailed as failure:
    print(failure.stage, failure.bytes_requested)
print(len(executor.execute([Chunk(0, [1], 8, True)]).tokens))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS as Linux has it")
def test_step_too_large_and_the_process_goes_on() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STEP_TOO_LARGE], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"step {4000 * 32768 * 4}", "1"]


def test_cuda_words() -> None:
    error = torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 22.19 GiB"
    )
    with pytest.raises(AllocationFailed) as caught, out_of_memory("step"):
        raise error
    assert caught.value.bytes_requested == 21_474_836_480  # 20 x 2^30
    assert caught.value.__cause__ is error


def test_python_words() -> None:
    with pytest.raises(AllocationFailed) as caught, out_of_memory("probe"):
        raise MemoryError
    assert (caught.value.bytes_requested, caught.value.message) == (None, "MemoryError")


def test_other_failures_pass() -> None:
    with pytest.raises(RuntimeError, match="shape") as caught, out_of_memory("step"):
        torch.zeros(3).view(2, 2)
    assert not isinstance(caught.value, AllocationFailed)
