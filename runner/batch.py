"""What the engine asks of the model in one step, and what it gets back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Chunk:
    """New tokens of one request; `start` of its tokens are in the KV cache already."""

    request: int
    token_ids: Sequence[int]
    start: int
    samples: bool  # whether the last token's logits are sampled


@dataclass(frozen=True, slots=True)
class StepResult:
    """The sampled token of each sampling request, and the time of the forward pass.

    `forward_ns` is the forward call on a CPU, the device's own time (events) on a GPU.
    """

    tokens: dict[int, int]
    forward_ns: int


class Executor(Protocol):
    """Runs steps and keeps each request's keys and values until it is freed."""

    kv_bytes_per_token: int

    def execute(self, chunks: Sequence[Chunk]) -> StepResult: ...

    def free(self, request: int) -> None: ...
