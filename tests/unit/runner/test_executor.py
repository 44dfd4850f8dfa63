"""The executor: whose token is whose, what is timed, what is freed."""

from __future__ import annotations

import pytest

from stallscope.profiler.spec import ModelSpec
from stallscope.runner.batch import Chunk
from stallscope.runner.decoder import build_decoder
from stallscope.runner.executor import TorchExecutor
from stallscope.runner.kv_pool import KvPool
from stallscope.runner.token_sampling import Sampling

SPEC = ModelSpec("x", 64, 96, 2, 4, 2, 16, 200, 256)


def _executor(sampling: Sampling | None = None, times: tuple[int, ...] = ()) -> TorchExecutor:
    clock = iter(times or range(10**6)).__next__
    pool = KvPool(SPEC, 32, 8, "fp32", "cpu")
    return TorchExecutor(build_decoder(SPEC), pool, sampling, clock=clock)


def _greedy(executor: TorchExecutor, request: int, prompt: list[int], count: int) -> list[int]:
    tokens = [executor.execute([Chunk(request, prompt, 0, True)]).tokens[request]]
    while len(tokens) < count:
        chunk = Chunk(request, tokens[-1:], len(prompt) + len(tokens) - 1, True)
        tokens.append(executor.execute([chunk]).tokens[request])
    return tokens


def test_only_sampling_requests_get_a_token() -> None:
    executor = _executor()
    alone = {r: _greedy(executor, r, prompt, 1)[0] for r, prompt in ((1, [5, 6]), (2, [7, 8, 9]))}
    executor.free(1)
    executor.free(2)
    chunks = [Chunk(3, [1, 2], 0, False), Chunk(2, [7, 8, 9], 0, True), Chunk(1, [5, 6], 0, True)]
    assert executor.execute(chunks).tokens == alone
    assert executor.execute([Chunk(4, [1], 0, False)]).tokens == {}


def test_time_is_the_forward_calls() -> None:
    executor = _executor(times=(100, 350, 1000, 1007))
    assert executor.execute([Chunk(0, [1, 2], 0, True)]).forward_ns == 250
    assert executor.execute([Chunk(0, [3], 2, True)]).forward_ns == 7


def test_generation_varies_and_repeats() -> None:
    executor = _executor()
    first = _greedy(executor, 0, [1, 2, 3], 20)
    assert len(set(first)) > 3
    assert _greedy(executor, 1, [1, 2, 3], 20) == first
    drawn = _greedy(_executor(Sampling(1.0, seed=1)), 0, [1, 2, 3], 20)
    assert drawn != first
    assert drawn == _greedy(_executor(Sampling(1.0, seed=1)), 0, [1, 2, 3], 20)


def test_blocks_are_taken_and_given_back() -> None:
    executor = _executor()
    assert executor.kv_bytes_per_token == 512  # 2 x 2 layers x 2 heads x 16 x 4 bytes
    _greedy(executor, 0, [1] * 8, 1)
    assert executor.pool.used_blocks == 1
    executor.execute([Chunk(0, [1], 8, True)])
    assert executor.pool.used_blocks == 2
    executor.free(0)
    assert executor.pool.used_blocks == 0


def test_an_empty_chunk_is_refused() -> None:
    with pytest.raises(ValueError, match="the chunk of request 7 has no tokens"):
        _executor().execute([Chunk(7, [], 0, True)])


@pytest.mark.gpu
def test_cuda_agrees_with_the_cpu_and_times_with_events() -> None:
    chunks = [Chunk(0, list(range(1, 30)), 0, True), Chunk(1, [4, 5], 0, True)]
    here = _executor().execute(chunks)
    decoder = build_decoder(SPEC, device="cuda")
    again = build_decoder(SPEC, device="cuda")
    there = TorchExecutor(decoder, KvPool(SPEC, 32, 8, "fp32", "cuda")).execute(chunks)
    same = TorchExecutor(again, KvPool(SPEC, 32, 8, "fp32", "cuda")).execute(chunks)
    assert set(there.tokens) == set(here.tokens)
    assert there.tokens == same.tokens  # weights are drawn on the device: not the CPU's
    assert 1_000 < there.forward_ns < 10**10
