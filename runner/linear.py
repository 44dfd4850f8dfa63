"""Linear layers on a CPU or a GPU: four ways to multiply, one result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, cast

import torch
import torch.nn.functional as F
from torch import Tensor

Kernel = Literal["aten", "mv", "onednn", "widened"]
WIDENED_ROWS = 8  # with fewer the pass over the weight is not won back
WIDENED_ELEMENTS = 1 << 20  # at a time: 4 MiB, which a cache holds, and no second weight
AnyLinear = Callable[[Tensor], Tensor]  # also those of a model that is not ours


class LinearOp(Protocol):
    """A weight and what multiplies with it."""

    weight: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Return `x · weightᵀ + bias`."""
        ...

    def add_to(self, hidden: Tensor, x: Tensor) -> None:
        """Add the product to `hidden`, in place."""
        ...


class AtenLinear:
    """torch's own: MKL on a CPU, cuBLAS on a GPU."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight = weight
        self.bias = bias
        self._transposed = weight.t()

    def __call__(self, x: Tensor) -> Tensor:
        if self.bias is not None:
            return F.linear(x, self.weight, self.bias)
        return torch.mm(x, self._transposed)  # as F.linear, by a shorter way

    def add_to(self, hidden: Tensor, x: Tensor) -> None:
        """Add the product within the product itself: one operator for two."""
        if self.bias is not None:
            hidden += self.bias
        hidden.addmm_(x, self._transposed)


@dataclass(slots=True)
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

    def add_to(self, hidden: Tensor, x: Tensor) -> None:
        """Add the product."""
        hidden += self(x)


@dataclass(slots=True)
class WidenedLinear(MvLinear):
    """Many rows by way of fp32, for a 16-bit weight on a processor that cannot multiply in 16 bit.

    Widening the weight costs a pass over it, which is less than what torch's replacement for such
    arithmetic loses: on an AMD EPYC without AVX-512 15 GFLOP/s in bf16 against 116 this way.
    """

    def __call__(self, x: Tensor) -> Tensor:
        if x.shape[0] < WIDENED_ROWS:
            return super(WidenedLinear, self).__call__(x)
        wide_x, product = x.float(), x.new_empty((x.shape[0], self.weight.shape[0]))
        outputs = max(1, WIDENED_ELEMENTS // self.weight.shape[1])
        for start in range(0, self.weight.shape[0], outputs):
            part = slice(start, start + outputs)
            wide = torch.mm(wide_x, self.weight[part].float().t())
            if self.bias is not None:
                wide += self.bias[part]
            product[:, part] = wide
        return product


@dataclass(slots=True)
class OneDnnLinear:
    """oneDNN's, as torch's own compiler calls it; `weight` may be in oneDNN's blocked layout."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        op = torch.ops.mkldnn._linear_pointwise.default
        return cast(Tensor, op(x, self.weight, self.bias, "none", [], ""))

    def add_to(self, hidden: Tensor, x: Tensor) -> None:
        """Add the product."""
        hidden += self(x)


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
    if kernel == "widened":
        return WidenedLinear(weight, bias)
    if pack:
        weight = torch.ops.mkldnn._reorder_linear_weight(weight, 1)
    return OneDnnLinear(weight, bias)
