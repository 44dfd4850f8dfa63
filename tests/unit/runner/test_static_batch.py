"""A batch's tensors by hand: padding on the left, positions of what is real, rows that ran out."""

from __future__ import annotations

import torch

from stallscope.runner.batch import Chunk
from stallscope.runner.static_batch import new_batch

CPU = torch.device("cpu")


def test_prompts_end_together_and_then_grow_by_a_token() -> None:
    batch = new_batch([Chunk(5, [11, 12, 13], 0, True), Chunk(9, [21], 0, True)], CPU)
    assert batch.requests == (5, 9)
    assert batch.token_ids.tolist() == [[11, 12, 13], [0, 0, 21]]
    assert batch.mask.tolist() == [[1, 1, 1], [0, 0, 1]]
    assert batch.positions.tolist() == [[0, 1, 2], [0, 0, 0]]

    batch.advance([Chunk(5, [14], 3, True), Chunk(9, [22], 1, True)])
    assert batch.token_ids.tolist() == [[14], [22]]
    assert batch.mask.tolist() == [[1, 1, 1, 1], [0, 0, 1, 1]]
    assert batch.positions.tolist() == [[3], [1]]

    batch.ended.add(5)
    assert not batch.is_over
    batch.advance([Chunk(9, [23], 2, True)])  # the first row runs along, hidden
    assert batch.token_ids.tolist() == [[0], [23]]
    assert batch.mask.tolist() == [[1, 1, 1, 1, 0], [0, 0, 1, 1, 1]]
    assert batch.positions[1].tolist() == [2]
    assert batch.rows([Chunk(9, [23], 2, True)]) == [1]
    batch.ended.add(9)
    assert batch.is_over
