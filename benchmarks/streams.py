"""One stream of decode on the built-in engine, for benchmarks to put things around."""

from __future__ import annotations

import os
import sys

if "torch" in sys.modules:
    raise ImportError("import streams before torch, which reads these as it loads")
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

import torch as torch  # noqa: TID253, PLC0414 (for those who need it after this)

from stallscope.profiler.models import load_model
from stallscope.profiler.spec import ModelSpec
from stallscope.runner.batch import Chunk
from stallscope.runner.decoder import build_decoder
from stallscope.runner.executor import TorchExecutor
from stallscope.runner.kv_pool import KvPool

PROMPT = tuple(range(1, 17))
BLOCK_SIZE = 16


class Stream:
    """A request that can be started over and decoded token by token."""

    def __init__(self, preset: str, *, tokens: int, seed: int = 0) -> None:
        self.spec: ModelSpec = load_model(preset)
        decoder = build_decoder(self.spec, seed=seed)
        blocks = -(-(len(PROMPT) + tokens) // BLOCK_SIZE)
        self.executor = TorchExecutor(decoder, KvPool(self.spec, blocks, BLOCK_SIZE, "fp32", "cpu"))
        self.kernel = decoder.kernel
        self.position = 0
        self.token = 0

    def restart(self) -> None:
        """Drop the cache and prefill the prompt."""
        if self.position:
            self.executor.free(0)
        self.token = self.executor.execute([Chunk(0, PROMPT, 0, True)]).tokens[0]
        self.position = len(PROMPT)

    def decode(self) -> int:
        """Generate one token; return the forward call's nanoseconds."""
        result = self.executor.execute([Chunk(0, (self.token,), self.position, True)])
        self.token = result.tokens[0]
        self.position += 1
        return result.forward_ns
