"""How long products of each class of shapes take, and one small operator.

A model's matrices are passed in turn, so each comes from wherever all of them together fit. A small
model's may come from a large cache, a large one's never do: both amounts are measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

import torch

from stallscope.profiler.spec import ProductTime
from stallscope.runner.dtypes import torch_dtype
from stallscope.runner.linear import Kernel, LinearOp, linear
from stallscope.runner.linear_choice import fastest_kernel
from stallscope.runner.stopwatch import passes_s

# Outputs and inputs: of small and usual models' attention, MLPs both ways, and heads.
SHAPES = ((512, 512), (1024, 1024), (4096, 1024), (1024, 4096), (16384, 1024))
ROWS = (1, 2, 4, 8, 16, 32, 128, 512, 2048)
BASE_BYTES = 96 << 20
_MOST_ROWS_BY_MEMORY = 16  # with more rows arithmetic hides where the weights come from
_LEAST_MORE = 256 << 20
_MOST = 1 << 30
_FREE_SHARE = 1 / 8  # packing keeps a second copy for a moment
_PASS_S = 0.05  # of products bound by arithmetic fewer matrices are passed
_WITHIN_S = 0.06
_LONG_S = 0.25  # one product: of more rows none is tried
_LAUNCHES = 2000


def weight_amounts(cache_bytes: int | None, free_bytes: int) -> tuple[int, ...]:
    """Return the amounts of weights to pass in turn, ascending, as far as memory allows.

    The last is twice what the last-level cache holds.
    """
    twice = min(2 * (cache_bytes or 0), _MOST)
    wanted = sorted({BASE_BYTES, _LEAST_MORE, max(twice, _LEAST_MORE)})
    return tuple(a for a in wanted if a == BASE_BYTES or a <= _FREE_SHARE * free_bytes)


@torch.inference_mode()
def probe_products(
    dtype: str,
    device: str,
    *,
    shapes: Sequence[tuple[int, int]] = SHAPES,
    amounts: Sequence[int] = (BASE_BYTES,),
) -> tuple[ProductTime, ...]:
    """Time one product of each shape, number of rows and amount of weights.

    Each time is the median pass's, mean over the matrices: in a cache that others share, the best
    pass is luck that a usual step doesn't have. Past the first amount, only products of so few rows
    that memory may bind them.
    """
    element, place = torch_dtype(dtype), torch.device(device)
    kernel = fastest_kernel(element, place)
    found: list[ProductTime] = []
    for amount in amounts:
        rows = [n for n in ROWS if amount == amounts[0] or n <= _MOST_ROWS_BY_MEMORY]
        for outputs, inputs in shapes:
            count = max(2, amount // (outputs * inputs * element.itemsize))
            layers = _layers(count, (outputs, inputs), element, place, kernel)
            taken = count * outputs * inputs * element.itemsize
            found.extend(
                ProductTime(dtype, inputs, outputs, n, time_s, taken)
                for n, time_s in _times(layers, inputs, rows, element, device)
            )
    return tuple(found)


def _layers(
    count: int, shape: tuple[int, int], element: torch.dtype, place: torch.device, kernel: Kernel
) -> list[LinearOp]:
    weights = (torch.full(shape, 0.01, dtype=element, device=place) for _ in range(count))
    return [linear(weight, kernel=kernel) for weight in weights]


def _times(
    layers: Sequence[LinearOp], inputs: int, rows: Sequence[int], element: torch.dtype, device: str
) -> Iterator[tuple[int, float]]:
    last_s = 0.0
    for n in rows:
        if last_s > _LONG_S:
            return
        x = torch.full((n, inputs), 0.01, dtype=element, device=device)
        bound = n > _MOST_ROWS_BY_MEMORY and last_s
        few = max(1, min(len(layers), round(_PASS_S / last_s))) if bound else len(layers)
        last_s = _usual_s(layers[:few], x, device)
        yield n, last_s


def _usual_s(layers: Sequence[LinearOp], x: torch.Tensor, device: str) -> float:
    def once() -> None:
        for layer in layers:
            layer(x)

    passes = passes_s(once, device=device, within_s=_WITHIN_S)
    return statistics.median(passes) / len(layers)


@torch.inference_mode()
def probe_launch(device: str) -> float:
    """Return the seconds that one small operator costs in a row of them: best of a few rows."""
    x = torch.zeros(64, device=device)

    def many() -> None:
        for _ in range(_LAUNCHES):
            x.add_(1.0)

    return min(passes_s(many, device=device, within_s=0.1)) / _LAUNCHES
