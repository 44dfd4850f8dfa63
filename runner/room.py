"""Ask whether memory is there before touching it: a host kills processes instead of refusing."""

from __future__ import annotations

from math import prod

import torch

from stallscope.profiler.spec import DTYPE_BYTES, ModelSpec
from stallscope.runner.machine import host_memory_bytes
from stallscope.runner.out_of_memory import AllocationFailed, Stage, out_of_memory
from stallscope.runner.weights import tensor_shapes


def weight_bytes(spec: ModelSpec, dtype: str) -> int:
    """Return the bytes of all of a model's tensors."""
    return round(sum(map(prod, tensor_shapes(spec).values())) * DTYPE_BYTES[dtype])


def check_room(stage: Stage, needed_bytes: int, device: str) -> None:
    """Raise AllocationFailed if the host would refuse the memory, or could not back it.

    Linux grants far more address space than it has pages, and kills whoever then uses it. A GPU
    refuses by itself.
    """
    if device != "cpu":
        return
    with out_of_memory(stage):
        torch.empty(needed_bytes, dtype=torch.uint8)  # address space only; freed at once
    available = host_memory_bytes()[1]
    if needed_bytes > available:
        raise AllocationFailed(
            stage, needed_bytes, f"the machine has {available:,} bytes of memory available"
        )
