"""An executor that remembers what every request sampled."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.runner.batch import Chunk, StepResult
from stallscope.runner.executor import TorchExecutor


class Listening:
    """Passes steps on and keeps what every request sampled."""

    def __init__(self, executor: TorchExecutor) -> None:
        self.executor = executor
        self.kv_bytes_per_token = executor.kv_bytes_per_token
        self.heard: dict[int, list[int]] = {}

    def execute(self, chunks: Sequence[Chunk]) -> StepResult:
        result = self.executor.execute(chunks)
        for request, token in result.tokens.items():
            self.heard.setdefault(request, []).append(token)
        return result

    def free(self, request: int) -> None:
        self.executor.free(request)
