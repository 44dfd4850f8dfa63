"""Which linear kernel is the fastest here, by measurement: no build of torch is best everywhere.

Seen with torch 2.13 on two cores at one row, fp32: MKL 8 to 16 GB/s on an AMD EPYC where oneDNN
reads 20 to 28; bf16: oneDNN 13 to 17 GB/s unpacked, 19 to 24 packed, mv 8 to 11, whereas on a
Xeon mv was faster than unpacked oneDNN; on an EPYC without AVX-512 there is no oneDNN in bf16.
"""

from __future__ import annotations

import time
from functools import cache

import torch

from stallscope.runner.linear import Kernel, LinearOp, linear

_ORDER: tuple[Kernel, ...] = ("onednn", "aten", "mv")
_ORDER_16_BIT: tuple[Kernel, ...] = (*_ORDER, "widened")
_ADVANTAGE = 1.15  # what a later kernel must gain, so that noise does not choose
_ROWS = (1, 4, 16)  # decode batches: more rows are bound by compute, where kernels differ less
_SHAPE = (2048, 1024)
_BYTES = 64 << 20  # over several matrices, to outgrow the caches as a model does
_PASSES = 6


def fastest_kernel(dtype: torch.dtype, device: torch.device) -> Kernel:
    """Return the kernel for decode on this machine; measured once in a process."""
    return _fastest_on_cpu(dtype) if device.type == "cpu" else "aten"


@cache
@torch.inference_mode()
def _fastest_on_cpu(dtype: torch.dtype) -> Kernel:
    count = _BYTES // (_SHAPE[0] * _SHAPE[1] * dtype.itemsize)
    weights = [torch.full(_SHAPE, 0.01, dtype=dtype) for _ in range(count)]
    order = _ORDER_16_BIT if dtype.itemsize == 2 else _ORDER
    layers = {kernel: ops for kernel in order if (ops := _supported(kernel, weights))}
    inputs = [torch.full((rows, _SHAPE[1]), 0.01, dtype=dtype) for rows in _ROWS]
    best: dict[tuple[Kernel, int], int] = {}
    for _ in range(_PASSES):  # interleaved: the machine's speed may drift
        for x in inputs:
            for kernel, ops in layers.items():
                spent, key = _pass_ns(ops, x), (kernel, x.shape[0])
                best[key] = min(spent, best.get(key, spent))
    return choose({kernel: sum(best[kernel, rows] for rows in _ROWS) for kernel in layers})


def choose(spent_ns: dict[Kernel, int]) -> Kernel:
    """Return the fastest, in favour of the earlier one where two are close."""
    chosen = next(iter(spent_ns))
    for kernel in spent_ns:
        if spent_ns[kernel] * _ADVANTAGE < spent_ns[chosen]:
            chosen = kernel
    return chosen


def _supported(kernel: Kernel, weights: list[torch.Tensor]) -> list[LinearOp]:
    try:
        ops = [linear(weight, kernel=kernel) for weight in weights]
        ops[0](torch.full((1, _SHAPE[1]), 0.01, dtype=weights[0].dtype))
    except (AttributeError, RuntimeError):  # a build or a processor without it
        return []
    return ops


def _pass_ns(ops: list[LinearOp], x: torch.Tensor) -> int:
    started = time.perf_counter_ns()
    for op in ops:
        op(x)
    return time.perf_counter_ns() - started
