"""What kernels and engines reach of a datasheet, from public measurements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Achievable:
    """Fractions of the datasheet, and what a kernel and a step cost besides; times in seconds.

    A kernel's memory and arithmetic overlap in part: it takes start + hypot(memory, arithmetic).
    Fitted on every tenth row of tables of A100 and H100 kernels under vLLM 0.14 (aiconfigurator's
    measurements, Apache-2.0): matrix products of 10 MB and more, decode attention of 1 MB and
    more, prefill attention of 1 GFLOP and more. benchmarks/public_tables.py repeats the fit and
    shows the errors on the other rows.
    """

    product_memory: float = 0.85
    product_compute: float = 0.85
    product_start_s: float = 4e-6
    attention_memory: float = 0.75
    attention_compute: float = 0.50
    attention_start_s: float = 14e-6
    # Norms, rotation with the cache's writes, activation, residual; each reads and writes rows
    # (Vidur's A100 tables, MIT: 2 to 11 µs each at one row).
    small_kernels: int = 5  # a layer
    small_start_s: float = 3e-6
    # Choosing experts, aligning and sorting rows by them, and summing what they make: vLLM's
    # topk_softmax, moe_align_block_size with its sort, and moe_sum.
    expert_kernels: int = 4  # a layer with experts
    # NCCL's all-reduce inside an H100 machine (Vidur's table): 20 µs, then at 0.75 of NVLink.
    reduce_start_s: float = 20e-6
    reduce_link: float = 0.75
    # What the engine's host adds to a step (llama-2-7b on vLLM of 2024, A100 and H100, batches that
    # fit: LLM-Inference-Bench, BSD-3-Clause). Later engines overlap part of it.
    step_s: float = 1.27e-3
    request_s: float = 3e-6


DEFAULT = Achievable()
