"""Bytes of one matrix in each weight format, scales and zero points included."""

from __future__ import annotations

import math

from stallscope.analyzers.cost.linears import Linear
from stallscope.profiler.model_parts import Quantization
from stallscope.profiler.spec import DTYPE_BYTES, ModelSpec

# Weight-only formats quantise the linears of the blocks; embedding, LM head and norms stay at
# 16 bit (what AutoGPTQ, AutoAWQ and the fp8 checkpoints of vLLM's compressor all do).
QUANTISED = frozenset({"fp8", "int8", "int4", "mxfp4", "nvfp4"})
_SCALE_BYTES = 2.0
_INDEX_BYTES = 4.0  # GPTQ's g_idx: which group each input is of
_MX_BLOCK = 32  # elements that share an 8-bit scale (OCP Microscaling Formats, v1.0)
_NV_BLOCK = 16  # elements that share an fp8 scale; one fp32 scale a tensor besides (NVFP4)


def plain_bytes(dtype: str) -> float:
    """Return the bytes of an element that the format leaves alone."""
    return 2.0 if dtype in QUANTISED else DTYPE_BYTES[dtype]


def matrix_bytes(spec: ModelSpec, linear: Linear, dtype: str) -> float:
    """Return the bytes of one copy of a linear's weight in one layer, as the engine stores it."""
    counted = _counted_bytes(spec, linear, dtype)
    return counted * spec.stored.weights if linear.is_quantised else counted


def _counted_bytes(spec: ModelSpec, linear: Linear, dtype: str) -> float:
    inputs, outputs = linear.inputs, linear.outputs
    if not _is_quantised(spec, linear, dtype):
        return inputs * outputs * plain_bytes(dtype)
    payload = inputs * outputs * DTYPE_BYTES[dtype]
    stored = spec.quantization or Quantization("awq")
    if dtype == "int4":
        groups = math.ceil(inputs / stored.group_size) * outputs
        index = inputs * _INDEX_BYTES if stored.method == "gptq" else 0.0
        return payload + groups * (_SCALE_BYTES + DTYPE_BYTES["int4"]) + index
    if dtype == "int8":
        return payload + outputs * _SCALE_BYTES
    if dtype == "mxfp4":
        return payload + math.ceil(inputs / _MX_BLOCK) * outputs
    if dtype == "nvfp4":
        return payload + math.ceil(inputs / _NV_BLOCK) * outputs + 4.0
    if dtype == "fp8" and stored.block:
        blocks = math.ceil(outputs / stored.block[0]) * math.ceil(inputs / stored.block[1])
        return payload + 4.0 * blocks
    return payload + (4.0 if dtype == "fp8" else 0.0)  # one fp32 scale per tensor


def _is_quantised(spec: ModelSpec, linear: Linear, dtype: str) -> bool:
    """MXFP4 as released (gpt-oss) is of the experts alone, where there are any."""
    if dtype == "mxfp4" and spec.mixture is not None:
        return linear.copies > 1
    return dtype in QUANTISED and linear.is_quantised
