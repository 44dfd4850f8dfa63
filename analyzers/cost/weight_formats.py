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
    """Return the mean over its layers, of which a checkpoint may leave some as they were."""
    plain = linear.inputs * linear.outputs * plain_bytes(dtype)
    share = _plain_share(spec, linear, dtype)
    if share == 1.0:
        return plain
    return share * plain + (1.0 - share) * _packed_bytes(spec, linear, dtype)


def _packed_bytes(spec: ModelSpec, linear: Linear, dtype: str) -> float:
    inputs, outputs = linear.inputs, linear.outputs
    payload = inputs * outputs * DTYPE_BYTES[dtype]
    stored = spec.quantization or Quantization("awq")
    if dtype == "int4":
        groups = math.ceil(inputs / stored.group_size) * outputs
        zero = DTYPE_BYTES["int4"] if stored.zeros else 0.0
        index = inputs * _INDEX_BYTES if stored.method == "gptq" else 0.0
        return payload + groups * (_SCALE_BYTES + zero) + index
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


def _plain_share(spec: ModelSpec, linear: Linear, dtype: str) -> float:
    """Return the part of its layers in which a matrix keeps its 16 bits.

    A checkpoint's list holds for its own format: for another dtype, none is made yet.
    """
    if not _is_quantised(spec, linear, dtype):
        return 1.0
    stored = spec.quantization
    if stored is None or dtype != spec.dtype:
        return 0.0
    plain = sum(kept.layers for kept in stored.plain if kept.linear == linear.name)
    return min(1.0, plain / max(1, linear.layers))


def _is_quantised(spec: ModelSpec, linear: Linear, dtype: str) -> bool:
    """MXFP4 as released (gpt-oss) is of the experts alone, where there are any."""
    stored = spec.quantization
    has_list = stored is not None and stored.method == "compressed-tensors"
    if dtype == "mxfp4" and spec.mixture is not None and not has_list:
        return linear.copies > 1
    return dtype in QUANTISED and linear.is_quantised
