"""The element types that the runner computes with, by our names."""

from __future__ import annotations

import torch

from stallscope.errors import UsageError

_TORCH_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def torch_dtype(name: str) -> torch.dtype:
    """Return torch's type for one of our names."""
    if name not in _TORCH_DTYPES:
        known = ", ".join(_TORCH_DTYPES)
        raise UsageError(f"dtype {name}: the runner computes in {known}; choose one of them")
    return _TORCH_DTYPES[name]
