"""Run the engine's steps on the decoder and its KV pool."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from stallscope.runner.batch import Chunk, StepResult
from stallscope.runner.decoder import Decoder
from stallscope.runner.forward_timer import CallTimer, Clock, EventTimer, ForwardTimer
from stallscope.runner.kv_pool import KvPool
from stallscope.runner.out_of_memory import out_of_memory
from stallscope.runner.ragged import ragged
from stallscope.runner.token_sampling import Sampler, Sampling


class TorchExecutor:
    """An `Executor` with torch behind it."""

    def __init__(
        self,
        decoder: Decoder,
        pool: KvPool,
        sampling: Sampling | None = None,
        *,
        clock: Clock = time.perf_counter_ns,
    ) -> None:
        self.decoder = decoder
        self.pool = pool
        self.kv_bytes_per_token = pool.bytes_per_token
        self._sampler = Sampler(sampling or Sampling(), decoder.device)
        on_gpu = decoder.device.type == "cuda"
        self._timer: ForwardTimer = EventTimer() if on_gpu else CallTimer(clock)

    @torch.inference_mode()
    def execute(self, chunks: Sequence[Chunk]) -> StepResult:
        """Run one step; raises AllocationFailed where memory is refused."""
        with out_of_memory("step"):
            for chunk in chunks:
                self.pool.ensure(chunk.request, chunk.start + len(chunk.token_ids))
            batch = ragged(chunks, self.pool, self.decoder.device)
            self._timer.start()
            logits = self.decoder.forward(batch)
            self._timer.stop()
            for chunk in chunks:
                self.pool.slide(chunk.request, chunk.start + len(chunk.token_ids))
            sampled = self._sampler.sample(logits)
        requests = [chunk.request for chunk in chunks if chunk.samples]
        return StepResult(dict(zip(requests, sampled, strict=True)), self._timer.elapsed_ns())

    def free(self, request: int) -> None:
        """Give a request's KV blocks back."""
        self.pool.free(request)
