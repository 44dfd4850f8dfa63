"""What engines and checkpoints call the formats of weights, and the dtype that each amounts to."""

from __future__ import annotations

import re
from collections.abc import Mapping

NOT_QUANTIZED = frozenset({"", "none", "false", "auto", "unquantized"})
# vLLM: vllm/model_executor/layers/quantization/__init__.py; SGLang: --quantization. "modelopt"
# alone is FP8, and AWQ has 4 bits only.
_BY_METHOD: Mapping[str, str] = {
    "awq": "int4",
    "awq_marlin": "int4",
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "ptpc_fp8": "fp8",
    "w8a8_fp8": "fp8",
    "modelopt": "fp8",
    "modelopt_fp8": "fp8",
    "modelopt_fp4": "nvfp4",
    "nvfp4": "nvfp4",
    "petit_nvfp4": "nvfp4",
    "mxfp4": "mxfp4",
    "int8": "int8",
    "w8a8_int8": "int8",
    "experts_int8": "int8",
}
# Methods that hold several formats: the checkpoint's name often says which.
_SEVERAL = frozenset({"compressed-tensors", "gptq", "gptq_marlin", "moe_wna16", "auto-round"})
_IN_NAMES = (
    (r"nvfp4", "nvfp4"),
    (r"mxfp4", "mxfp4"),
    (r"fp8|w8a8-fp8", "fp8"),
    (r"w4a16|w4a8|int4|4bit|awq", "int4"),
    (r"w8a16|w8a8|int8|8bit", "int8"),
)


def is_quantized(method: str | None) -> bool:
    """Tell whether a setting names a method at all."""
    return method is not None and method.strip().lower() not in NOT_QUANTIZED


def weight_dtype(method: str, model: str | None) -> str | None:
    """Return the dtype of weights that an engine quantizes by a method; None where it is not known.

    Of a method that holds several formats, the name of the model decides, if it says one.
    """
    name = method.strip().lower()
    if name not in _SEVERAL:
        return _BY_METHOD.get(name)
    of_name = re.split(r"[^a-z0-9]+", (model or "").rstrip("/").split("/")[-1].lower())
    told = {d for pattern, d in _IN_NAMES if any(re.fullmatch(pattern, p) for p in of_name)}
    return told.pop() if len(told) == 1 else None
