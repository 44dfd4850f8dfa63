"""What the device reaches here and now: memory bandwidth and matrix-multiply throughput."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from stallscope.profiler.spec import ModelSpec
from stallscope.runner.linear import linear
from stallscope.runner.linear_choice import fastest_kernel
from stallscope.runner.stopwatch import passes_s

GIB = 1 << 30
_COLUMNS = 4096
_GEMM_SIZES = (512, 1024, 2048, 4096)  # the best size differs by dtype and machine
_GEMM_PASS_LIMIT_S = 0.6
_STREAM_S = 0.3  # for each kernel
_GEMM_S = 0.2


@dataclass(frozen=True, slots=True)
class StreamProbe:
    """Bytes per second read from a buffer of this size: best kernel, best pass."""

    bytes_per_s: float
    buffer_bytes: int
    kernel: str


@dataclass(frozen=True, slots=True)
class GemmProbe:
    """FLOP per second of a square product of size `n`, best size and pass."""

    flops_per_s: float
    n: int


def stream_buffer_bytes(cache_bytes: int | None, free_bytes: int) -> int:
    """Return a buffer well past the last-level cache, but at most half of the free memory."""
    return min(max(GIB, 2 * (cache_bytes or 0)), free_bytes // 2)


def step_weight_bytes(spec: ModelSpec, element_bytes: float) -> int:
    """Return the bytes of all matrices that a step reads: the linears, without the embedding."""
    heads, kv_heads = spec.num_heads * spec.head_dim, spec.num_kv_heads * spec.head_dim
    attention = spec.hidden_size * (2 * heads + 2 * kv_heads)
    layer = attention + 3 * spec.hidden_size * spec.intermediate_size
    head = spec.hidden_size * spec.vocab_size
    return round((spec.num_layers * layer + head) * element_bytes)


def probe_stream(buffer_bytes: int, device: str) -> StreamProbe:
    """Read a buffer whole with several kernels.

    No kernel is the best everywhere: torch.mv came within 10 % of a hand-written C loop on a Xeon
    and reached a third of what torch.sum reads on an EPYC (torch 2.13).
    """
    rows = max(1, buffer_bytes // (4 * _COLUMNS))
    matrix = torch.full((rows, _COLUMNS), 0.5, device=device)
    vector = torch.ones(_COLUMNS, device=device)
    out = torch.empty(rows, device=device)
    flat = matrix.view(-1)
    kernels: dict[str, Callable[[], object]] = {
        "torch.sum": flat.sum,
        "torch.dot": lambda: torch.dot(flat, flat),
        "torch.mv": lambda: torch.mv(matrix, vector, out=out),
    }
    best = {
        name: min(passes_s(kernel, device=device, within_s=_STREAM_S))
        for name, kernel in kernels.items()
    }
    kernel = min(best, key=best.__getitem__)
    return StreamProbe(matrix.nbytes / best[kernel], matrix.nbytes, kernel)


@torch.inference_mode()
def probe_gemm(dtype: torch.dtype, device: str) -> GemmProbe:
    """Sweep square sizes upwards, as far as one product stays short, with the engine's own kernel.

    torch.mm itself may reach a hundredth of that: 1.3 GFLOP/s in bf16 against 116 on an AMD EPYC
    without AVX-512 (torch 2.13).
    """
    probes, place = [], torch.device(device)
    kernel = fastest_kernel(dtype, place)
    for n in _GEMM_SIZES:
        left = torch.full((n, n), 0.5, dtype=dtype, device=place)
        multiply = linear(torch.full_like(left, 0.5), kernel=kernel)
        best = min(passes_s(partial(multiply, left), device=device, within_s=_GEMM_S))
        probes.append(GemmProbe(2 * n**3 / best, n))
        if 8 * best > _GEMM_PASS_LIMIT_S:  # the next size takes eight times as long
            break
    return max(probes, key=lambda probe: probe.flops_per_s)
