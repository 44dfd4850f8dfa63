"""RMSNorm of one row, by hand and against torch's own."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from stallscope.runner.norm import rms_norm


@pytest.mark.parametrize("rows", [1, 2])
def test_by_hand(rows: int) -> None:
    # mean(9, 16) = 12.5, with 3.5 added √16 = 4: 3 / 4 · 2 and 4 / 4 · 0.5
    x = torch.tensor([[3.0, 4.0]] * rows)
    assert rms_norm(x, torch.tensor([2.0, 0.5]), 3.5).tolist() == [[1.5, 0.5]] * rows
    assert x.tolist() == [[3.0, 4.0]] * rows  # left as it was


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_as_torch_does(rows: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(rows)
    x = torch.randn(rows, 96, generator=generator).to(dtype)
    weight = torch.rand(96, generator=generator).to(dtype)
    torch.testing.assert_close(rms_norm(x, weight, 1e-5), F.rms_norm(x, (96,), weight, 1e-5))


def test_a_row_of_zeros_stays() -> None:
    assert rms_norm(torch.zeros(1, 4), torch.ones(4), 1e-6).tolist() == [[0.0] * 4]
