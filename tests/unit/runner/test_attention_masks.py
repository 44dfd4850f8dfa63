"""Masks against transformers' own rule, and the tiles that a long chunk is cut into."""

from __future__ import annotations

import pytest
import torch
from transformers.masking_utils import sliding_window_causal_mask_function

from stallscope.profiler.spec import ModelSpec
from stallscope.runner import ragged as ragged_module
from stallscope.runner.attention import sliding_mask
from stallscope.runner.batch import Chunk
from stallscope.runner.decoder import build_decoder
from stallscope.runner.kv_pool import KvPool
from stallscope.runner.ragged import ragged

CPU = torch.device("cpu")
SPEC = ModelSpec("w", 64, 96, 2, 4, 2, 16, 97, 4096, sliding_window=20)


@pytest.mark.parametrize("window", [1, 2, 5, 40])
@pytest.mark.parametrize("before", [0, 3, 9])
def test_mask_is_transformers_own(window: int, before: int) -> None:
    sees = sliding_window_causal_mask_function(window)
    mask = sliding_mask(7, before, window, torch.float32, CPU)
    for row in range(7):
        for key in range(before + 7):
            expected = bool(sees(0, 0, torch.tensor(before + row), torch.tensor(key)))
            assert (mask[row, key] == 0.0) == expected
            assert (mask[row, key] == float("-inf")) != expected


def test_long_chunks_are_cut_into_tiles_within_their_reach() -> None:
    pool = KvPool(SPEC, 40, 4, "fp32", "cpu")
    pool.ensure(0, 130)
    pieces = ragged([Chunk(0, [1] * 130, 0, True)], pool, CPU).pieces
    # Tiles of 20 rows; each also reaches the 19 keys before it.
    assert [(p.first, p.last) for p in pieces] == [(a, min(a + 20, 130)) for a in range(0, 130, 20)]
    keys = [sum(s[0].shape[2] for s in p.cache.stretches) for p in pieces]
    assert keys == [20, 39, 39, 39, 39, 39, 29]
    assert pieces[1].mask is pieces[2].mask  # one mask serves tiles of one shape


def test_short_contexts_are_not_cut() -> None:
    pool = KvPool(SPEC, 40, 4, "fp32", "cpu")
    pool.ensure(0, 20)
    (piece,) = ragged([Chunk(0, [1] * 20, 0, True)], pool, CPU).pieces
    assert piece.mask is None


@pytest.mark.parametrize("rows", [1, 7, 512])
def test_the_size_of_tiles_changes_nothing(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = build_decoder(SPEC, seed=2)
    tokens = [i * 7 % 97 for i in range(60)]

    def logits() -> torch.Tensor:
        pool = KvPool(SPEC, 40, 4, "fp32", "cpu")
        pool.ensure(0, 60)
        return decoder.forward(ragged([Chunk(0, tokens, 0, True)], pool, CPU))

    plain = logits()
    monkeypatch.setattr(ragged_module, "MOST_TILE_ROWS", rows)
    assert torch.allclose(logits(), plain, atol=1e-5)
