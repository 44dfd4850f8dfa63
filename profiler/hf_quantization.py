"""How a checkpoint's weights are stored, as the quantization_config of a config.json says."""

from __future__ import annotations

from stallscope.profiler.checked_json import Fields
from stallscope.profiler.model_parts import Quantization

_GROUP = 128  # what AutoGPTQ and AutoAWQ take unless told


def stored(config: Fields) -> tuple[Quantization, str] | None:
    """Return the format and the dtype it amounts to; None where there is none or it is not read."""
    given = config.inner("quantization_config")
    method = None if given is None else given.text("quant_method")
    if given is None or method is None:
        return None
    if method in ("awq", "gptq"):
        return _grouped(given, method)
    if method == "fp8":
        return Quantization(method, block=_block(given)), "fp8"
    if method == "mxfp4":
        return Quantization(method), "mxfp4"
    if method.startswith("modelopt"):
        return _modelopt(given)
    if method == "fbgemm_fp8":
        return Quantization(method), "fp8"
    return _compressed(given) if method == "compressed-tensors" else None


def _modelopt(given: Fields) -> tuple[Quantization, str] | None:
    """Read what NVIDIA's ModelOpt writes: its algorithm names the format."""
    dtype = {"FP8": "fp8", "NVFP4": "nvfp4"}.get((given.text("quant_algo") or "").upper())
    return None if dtype is None else (Quantization("modelopt"), dtype)


def _grouped(given: Fields, method: str) -> tuple[Quantization, str] | None:
    bits = given.size_or("bits", 4)
    if bits not in (4, 8):
        return None
    return Quantization(method, _group_size(given)), f"int{bits}"


def _compressed(given: Fields) -> tuple[Quantization, str] | None:
    """Read the groups of matrices; None where they are of several formats, or of one not known."""
    groups = given.inner("config_groups")
    inner = [groups.inner(name) for name in groups] if groups is not None else []
    found = [_of_group(group) for group in inner if group is not None and group.has("weights")]
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found) or len({dtype for _, dtype in known}) > 1:
        return None
    return known[0]


def _of_group(group: Fields) -> tuple[Quantization, str] | None:
    weights = group.inner("weights") or group
    bits, kind = weights.size_or("num_bits", 8), weights.text("type")
    dtype = {("int", 4): "int4", ("int", 8): "int8", ("float", 8): "fp8"}.get((kind or "", bits))
    if (kind, bits) == ("float", 4):  # NVFP4 shares a scale by 16 elements, MXFP4 by 32
        dtype = {16: "nvfp4", 32: "mxfp4"}.get(_group_size(weights))
    if dtype is None:
        return None
    activations = "input_activations"
    found = Quantization(
        "compressed-tensors",
        _group_size(weights),
        zeros=not weights.flag("symmetric", default=True),
        activations=group.has(activations) if activations in group else None,
    )
    return found, dtype


def _group_size(given: Fields) -> int:
    size = given.get("group_size")
    return size if isinstance(size, int) and size > 0 else _GROUP


def _block(given: Fields) -> tuple[int, ...]:
    """Return the outputs and inputs that share a scale, if scales are by block."""
    block = given.get("weight_block_size")
    if isinstance(block, list) and len(block) == 2:
        sizes = [n for n in block if isinstance(n, int) and not isinstance(n, bool) and n > 0]
        return tuple(sizes) if len(sizes) == 2 else ()
    return ()
