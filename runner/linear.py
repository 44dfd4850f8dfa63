"""Linear layers on a CPU or a GPU: three ways to multiply, one result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor

Kernel = Literal["aten", "mv", "onednn"]
LinearOp = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class AtenLinear:
    """torch's own: MKL on a CPU, cuBLAS on a GPU."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class MvLinear:
    """A single row as matrix times vector, which some builds do faster; more rows as usual."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        if x.shape[0] != 1:
            return F.linear(x, self.weight, self.bias)
        row = torch.mv(self.weight, x[0])
        if self.bias is not None:
            row += self.bias
        return row.unsqueeze(0)


@dataclass(frozen=True, slots=True)
class OneDnnLinear:
    """oneDNN's, as torch's own compiler calls it; `weight` may be in oneDNN's blocked layout."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        op = torch.ops.mkldnn._linear_pointwise.default
        return cast(Tensor, op(x, self.weight, self.bias, "none", [], ""))


def linear(
    weight: Tensor, bias: Tensor | None = None, *, kernel: Kernel, pack: bool = True
) -> LinearOp:
    """Return `x ↦ x · weightᵀ + bias`; `pack` lets a kernel keep its own copy of the weight.

    Don't pack a weight that something else holds on to: it would be in memory twice.
    """
    if kernel == "aten":
        return AtenLinear(weight, bias)
    if kernel == "mv":
        return MvLinear(weight, bias)
    if pack:
        weight = torch.ops.mkldnn._reorder_linear_weight(weight, 1)
    return OneDnnLinear(weight, bias)
