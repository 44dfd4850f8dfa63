"""Run the engine's steps on a model of transformers, a static batch at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from stallscope.runner.batch import Chunk, StepResult
from stallscope.runner.forward_timer import Clock
from stallscope.runner.forward_watch import ForwardWatch
from stallscope.runner.hf_model import CacheSize, HfModel, cache_size
from stallscope.runner.out_of_memory import out_of_memory
from stallscope.runner.static_batch import StaticBatch, new_batch
from stallscope.runner.token_sampling import Sampler, Sampling


class HfExecutor:
    """An `Executor` whose batches are padded; `cache` is the last step's, until the next one."""

    def __init__(
        self,
        model: HfModel,
        sampling: Sampling | None = None,
        *,
        clock: Clock = time.perf_counter_ns,
    ) -> None:
        spec = model.spec
        elements = 2 * spec.num_layers * spec.num_kv_heads * spec.head_dim
        self.model = model
        self.kv_bytes_per_token = elements * model.dtype.itemsize
        self.watch = ForwardWatch(model.module, clock=clock)
        self.cache = CacheSize(0, 0)
        self._sampler = Sampler(sampling or Sampling(), model.device)
        self._batch: StaticBatch | None = None
        self._cache: Any = None

    @torch.inference_mode()
    def execute(self, chunks: Sequence[Chunk]) -> StepResult:
        """Run one step: a new batch, or the next token of those requests that go on."""
        with out_of_memory("step"):
            batch = self._batch
            if batch is None:
                batch = self._batch = new_batch(chunks, self.model.device)
            else:
                batch.advance(chunks)
            logits, self._cache = self.model.forward(
                batch.token_ids, batch.mask, batch.positions, self._cache
            )
            sampled = self._sampler.sample(logits[batch.rows(chunks)])
        self.cache = cache_size(self._cache)
        tokens = dict(zip((chunk.request for chunk in chunks), sampled, strict=True))
        return StepResult(tokens, self.watch.last().forward_ns)

    def free(self, request: int) -> None:
        """Let a request end; its row's memory is given back with the whole batch's."""
        if self._batch is None:
            return
        self._batch.ended.add(request)
        if self._batch.is_over:
            self._batch = self._cache = None
