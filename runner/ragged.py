"""A step's chunks as one run of rows, and each request's share of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from stallscope.runner.attention import causal_mask
from stallscope.runner.batch import Chunk
from stallscope.runner.kv_pool import KvPool, KvView


@dataclass(frozen=True, slots=True)
class Piece:
    """The rows `first` to `last` of a batch, all of one request, and the keys they attend to."""

    first: int
    last: int
    cache: KvView
    mask: Tensor | None


@dataclass(frozen=True, slots=True)
class RaggedBatch:
    """All new tokens of a step, one row each, in the order of their chunks."""

    token_ids: Tensor
    positions: Tensor
    slots: Tensor
    pieces: tuple[Piece, ...]
    sample_rows: Tensor
    pool: KvPool


def ragged(chunks: Sequence[Chunk], pool: KvPool, device: torch.device) -> RaggedBatch:
    """Lay chunks out in rows; their requests must own the blocks already."""
    ids, positions, slots, samples = _rows(chunks, pool)
    # one copy to the device for all three
    columns = torch.tensor((ids, positions, slots), dtype=torch.int64).to(device)
    pieces = []
    last = 0
    for chunk in chunks:
        first, last = last, last + len(chunk.token_ids)
        cache = pool.view(chunk.request, chunk.start + last - first)
        mask = causal_mask(last - first, chunk.start, pool.dtype, device)
        pieces.append(Piece(first, last, cache, mask))
    sample_rows = torch.tensor(samples, dtype=torch.int64).to(device)
    return RaggedBatch(columns[0], columns[1], columns[2], tuple(pieces), sample_rows, pool)


def _rows(
    chunks: Sequence[Chunk], pool: KvPool
) -> tuple[list[int], list[int], list[int], list[int]]:
    ids: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    samples: list[int] = []
    for chunk in chunks:
        if not chunk.token_ids:
            raise ValueError(f"the chunk of request {chunk.request} has no tokens")
        stop = chunk.start + len(chunk.token_ids)
        ids.extend(chunk.token_ids)
        positions.extend(range(chunk.start, stop))
        slots.extend(pool.slots(chunk.request, chunk.start, stop))
        if chunk.samples:
            samples.append(len(ids) - 1)
    return ids, positions, slots, samples
