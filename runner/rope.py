"""Rotary position embedding, with llama-3 and linear scaling of its frequencies."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from stallscope.profiler.spec import ModelSpec, RopeScaling


def inverse_frequencies(spec: ModelSpec) -> Tensor:
    """Return the angle per position of each pair of dimensions, fp32 [head_dim / 2]."""
    exponents = torch.arange(0, spec.head_dim, 2, dtype=torch.float32) / spec.head_dim
    frequencies = 1.0 / spec.rope_theta**exponents
    scaling = spec.rope_scaling
    if scaling is None:
        return frequencies
    if scaling.kind == "linear":
        return frequencies / scaling.factor
    return _llama3(frequencies, scaling)


def _llama3(frequencies: Tensor, scaling: RopeScaling) -> Tensor:
    """Slow long waves by `factor`, keep short ones, and blend in between."""
    turns = scaling.original_max_position * frequencies / (2 * math.pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    kept = ((turns - low) / (high - low)).clamp(0.0, 1.0)
    return frequencies * kept + frequencies / scaling.factor * (1 - kept)


def rotation(positions: Tensor, frequencies: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return cosine and signed sine for `rotate`, each [tokens, 1, head_dim]."""
    angles = torch.outer(positions.float(), frequencies).unsqueeze_(1)
    sine = angles.sin()
    angles.cos_()
    both = torch.cat((angles, angles), -1), torch.cat((-sine, sine), -1)
    return both[0].to(dtype), both[1].to(dtype)


def rotate(x: Tensor, cosine: Tensor, signed_sine: Tensor) -> Tensor:
    """Rotate [tokens, heads, head_dim]; a pair is a dimension and the one half a head further."""
    return (x * cosine).addcmul_(x.roll(x.shape[-1] // 2, -1), signed_sine)
