"""The tensors of a static batch: prompts padded on the left, then a token a row and step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from stallscope.runner.batch import Chunk

FILLER = 0  # a token like any other: the mask hides it


@dataclass(slots=True)
class StaticBatch:
    """Rows stay where they are until the last request ends; `mask` shows what belongs to one."""

    requests: tuple[int, ...]
    token_ids: Tensor
    mask: Tensor
    positions: Tensor
    ended: set[int] = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        """Whether every request has ended."""
        return len(self.ended) == len(self.requests)

    def rows(self, chunks: Sequence[Chunk]) -> list[int]:
        """Return the rows of some chunks' requests."""
        row_of = {request: row for row, request in enumerate(self.requests)}
        return [row_of[chunk.request] for chunk in chunks]

    def advance(self, chunks: Sequence[Chunk]) -> None:
        """Take the next token of each request that goes on; the other rows run along unseen."""
        device = self.token_ids.device
        tokens = [[FILLER] for _ in self.requests]
        seen = [[0] for _ in self.requests]
        for row, chunk in zip(self.rows(chunks), chunks, strict=True):
            tokens[row] = list(chunk.token_ids)
            seen[row] = [1]
        self.token_ids = torch.tensor(tokens, dtype=torch.int64).to(device)
        self.mask = torch.cat([self.mask, torch.tensor(seen).to(device)], dim=1)
        self.positions = self.positions[:, -1:] + 1


def new_batch(chunks: Sequence[Chunk], device: torch.device) -> StaticBatch:
    """Lay whole prompts out, padded on the left to the longest, so that all end together."""
    longest = max(len(chunk.token_ids) for chunk in chunks)
    missing = [longest - len(chunk.token_ids) for chunk in chunks]
    tokens = [[FILLER] * n + list(c.token_ids) for n, c in zip(missing, chunks, strict=True)]
    seen = [[0] * n + [1] * (longest - n) for n in missing]
    mask = torch.tensor(seen).to(device)
    return StaticBatch(
        requests=tuple(chunk.request for chunk in chunks),
        token_ids=torch.tensor(tokens, dtype=torch.int64).to(device),
        mask=mask,
        positions=(mask.cumsum(-1) - 1).clamp(min=0),
    )
