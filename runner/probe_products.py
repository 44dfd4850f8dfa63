"""How long products of each class of shapes take, and one small operator, on weights not cached."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from stallscope.profiler.spec import ProductTime
from stallscope.runner.dtypes import torch_dtype
from stallscope.runner.linear import LinearOp, linear
from stallscope.runner.linear_choice import fastest_kernel
from stallscope.runner.stopwatch import passes_s

# Outputs and inputs: of small and usual models' attention, MLPs both ways, and heads.
SHAPES = ((512, 512), (1024, 1024), (4096, 1024), (1024, 4096), (16384, 1024))
ROWS = (1, 2, 4, 8, 16, 32, 128, 512, 2048)
_WEIGHT_BYTES = 96 << 20  # over several matrices, so that each comes from memory as in a step
_PASS_S = 0.05  # of products bound by arithmetic fewer matrices are passed
_WITHIN_S = 0.06
_LONG_S = 0.25  # one product: of more rows none is tried
_LAUNCHES = 2000


@torch.inference_mode()
def probe_products(
    dtype: str, device: str, *, shapes: Sequence[tuple[int, int]] = SHAPES
) -> tuple[ProductTime, ...]:
    """Time one product of each shape and number of rows: best pass, mean over the matrices."""
    element, place = torch_dtype(dtype), torch.device(device)
    kernel = fastest_kernel(element, place)
    found = []
    for outputs, inputs in shapes:
        count = max(2, _WEIGHT_BYTES // (outputs * inputs * element.itemsize))
        weights = (
            torch.full((outputs, inputs), 0.01, dtype=element, device=place) for _ in range(count)
        )
        layers = [linear(weight, kernel=kernel) for weight in weights]
        last_s = 0.0
        for rows in ROWS:
            if last_s > _LONG_S:
                break
            x = torch.full((rows, inputs), 0.01, dtype=element, device=place)
            few = max(1, min(count, round(_PASS_S / last_s))) if last_s else count
            last_s = _best_s(layers[:few], x, device)
            found.append(ProductTime(dtype, inputs, outputs, rows, last_s))
    return tuple(found)


def _best_s(layers: Sequence[LinearOp], x: torch.Tensor, device: str) -> float:
    def once() -> None:
        for layer in layers:
            layer(x)

    return min(passes_s(once, device=device, within_s=_WITHIN_S)) / len(layers)


@torch.inference_mode()
def probe_launch(device: str) -> float:
    """Return the seconds that one small operator costs in a row of them: best of a few rows."""
    x = torch.zeros(64, device=device)

    def many() -> None:
        for _ in range(_LAUNCHES):
            x.add_(1.0)

    return min(passes_s(many, device=device, within_s=0.1)) / _LAUNCHES
