"""A step's chunks as one run of rows, and each request's share of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from stallscope.runner.attention import causal_mask, sliding_mask
from stallscope.runner.batch import Chunk
from stallscope.runner.kv_pool import KvPool, KvView

MOST_TILE_ROWS = 512


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
    sample_rows: Tensor | None  # None: all rows
    pool: KvPool


def ragged(chunks: Sequence[Chunk], pool: KvPool, device: torch.device) -> RaggedBatch:
    """Lay chunks out in rows; their requests must own the blocks already."""
    ids, positions, slots, samples = _rows(chunks, pool)
    # one copy to the device for all three
    columns = torch.tensor((ids, positions, slots), dtype=torch.int64).to(device)
    pieces: list[Piece] = []
    first = 0
    for chunk in chunks:
        pieces.extend(_pieces(chunk, first, pool, device))
        first += len(chunk.token_ids)
    every = len(samples) == len(ids)
    sample_rows = None if every else torch.tensor(samples, dtype=torch.int64).to(device)
    return RaggedBatch(columns[0], columns[1], columns[2], tuple(pieces), sample_rows, pool)


def _pieces(chunk: Chunk, first: int, pool: KvPool, device: torch.device) -> Iterator[Piece]:
    new = len(chunk.token_ids)
    stop, window = chunk.start + new, pool.sliding_window
    if window is None or stop <= window:
        mask = causal_mask(new, chunk.start, pool.dtype, device)
        yield Piece(first, first + new, pool.view(chunk.request, 0, stop), mask)
        return
    # In tiles: a mask of the whole chunk over all that it reaches would be mostly out of reach.
    tile = min(window, MOST_TILE_ROWS)
    masks: dict[tuple[int, int], Tensor] = {}
    for a in range(chunk.start, stop, tile):
        b = min(a + tile, stop)
        reached = max(0, a - window + 1)
        shape = (b - a, a - reached)
        if shape not in masks and b - a > 1:
            masks[shape] = sliding_mask(*shape, window, pool.dtype, device)
        row = first + a - chunk.start
        cache = pool.view(chunk.request, reached, b)
        yield Piece(row, row + b - a, cache, masks.get(shape))


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
