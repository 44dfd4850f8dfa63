"""What a log states of the engine and its settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stallscope.profiler.server_log.lines import Line
from stallscope.profiler.server_log.sglang_memory import read_memory
from stallscope.profiler.server_log.sought import sought
from stallscope.profiler.weight_format import is_quantized, weight_dtype

_GIB = 1 << 30
# Lines that list settings, in the order in which they are believed: the engine's own configuration
# says what flags became.
_FLAGS = ("non-default args:", "Namespace(", "server_args=ServerArgs(", "Initializing a")
_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "max_num_seqs": ("max_num_seqs", "max_running_requests"),
    "max_num_batched_tokens": ("max_num_batched_tokens", "chunked_prefill_size"),
    "block_size": ("block_size", "page_size"),
    # As asked for: vLLM also overrides it for a moment, to measure.
    "kv_blocks_override": ("num_gpu_blocks_override",),
    "tensor_parallel": ("tensor_parallel_size", "tp_size"),
    "pipeline_parallel": ("pipeline_parallel_size", "pp_size"),
    "data_parallel": ("data_parallel_size", "dp_size"),
}
_NAMES: Mapping[str, tuple[str, ...]] = {
    "model": ("model", "model_path"),
    "dtype": ("dtype",),
    "quantization": ("quantization",),
    "kv_dtype": ("kv_cache_dtype",),
    "chunked_prefill": ("enable_chunked_prefill",),
}
_STATED = {
    "weights_bytes": sought(
        r"(?:Model loading took|Loading model weights took|[Mm]odel weights take) "
        r"(\d{1,6}(?:\.\d{1,6})?) ?Gi?B|Use (\d{1,6}(?:\.\d{1,6})?) GB for model weights",
        *("Model loading took", "Loading model weights took", "odel weights take", "Use "),
        before=1,
    ),
    "kv_bytes": sought(
        r"Available KV cache memory: (\d{1,6}(?:\.\d{1,6})?) GiB"
        r"|Allocated (\d{1,6}(?:\.\d{1,6})?) GiB for max tokens in paged KV cache",
        *("Available KV cache memory: ", "Allocated "),
    ),
    "kv_tokens": sought(
        r"KV cache size: ([\d,]{1,15}) tokens|max_total_num_tokens=(\d{1,12})"
        r"|for max tokens in paged KV cache \((\d{1,12})\)",
        *("KV cache size: ", "max_total_num_tokens=", "for max tokens in paged"),
    ),
    "kv_blocks": sought(r"# \w{2,6} blocks: (\d{1,9})", " blocks: ", before=8),
    "max_concurrency": sought(
        r"Maximum concurrency for [\d,]{1,12} tokens per request: (\d{1,9}(?:\.\d{1,4})?)x",
        "Maximum concurrency for ",
    ),
    "max_num_seqs": sought(r"max_running_requests=(\d{1,9})", "max_running_requests="),
    "max_num_batched_tokens": sought(
        r"Chunked prefill is enabled with max_num_batched_tokens=(\d{1,9})"
        r"|chunked_prefill_size=(\d{1,9})",
        *("Chunked prefill is enabled with ", "chunked_prefill_size="),
    ),
}
_VERSION = sought(
    r"vLLM API server version (\S{1,40})|\bversion (\d+\.\d+\S{0,30})|engine \(v(\S{1,40})\)"
    r"|TensorRT LLM version: (\S{1,40})",
    *("vLLM API server version ", "version ", "engine (v", "TensorRT LLM version: "),
)
_DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "fp8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "float8_e4m3fn": "fp8",
    "int8": "int8",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """Settings and sizes by name: those of _NUMBERS, _NAMES and _STATED; absent is not stated."""

    numbers: Mapping[str, float]
    names: Mapping[str, str]

    def whole(self, name: str) -> int | None:
        """Return a positive whole number."""
        value = self.numbers.get(name)
        return round(value) if value is not None and value > 0 else None

    @property
    def dtype(self) -> str | None:
        """The weights' dtype: of quantized ones that of the method, None where it is not known."""
        quantization = self.names.get("quantization")
        if quantization is not None:
            return weight_dtype(quantization, self.names.get("model"))
        return _DTYPES.get(self.names.get("dtype", ""))

    @property
    def kv_dtype(self) -> str | None:
        """The KV cache's dtype, where it is not the model's own."""
        return _DTYPES.get(self.names.get("kv_dtype", ""))

    @property
    def devices(self) -> int:
        """Devices that one engine spreads a model over."""
        return (self.whole("tensor_parallel") or 1) * (self.whole("pipeline_parallel") or 1)


def read_facts(lines: Sequence[Line]) -> Facts:
    """Gather settings; a later statement replaces an earlier one, sizes add up over no ranks."""
    numbers: dict[str, float] = {}
    names: dict[str, str] = {}
    for line in lines:
        if any(mark in line.text for mark in _FLAGS):
            _take_flags(line.text, numbers, names)
        for name, pattern in _STATED.items():
            found = pattern.search(line.text)
            if found is not None:
                value = float(
                    next(g for g in found.groups() if g is not None).replace(",", "") or 0
                )
                numbers[name] = value * (_GIB if name.endswith("_bytes") else 1)
        version = _VERSION.search(line.text)
        if version is not None and "version" not in names:
            names["version"] = next(g for g in version.groups() if g is not None)
    memory = dict(read_memory(lines))
    if "kv_bytes" in memory and numbers.setdefault("kv_tokens", memory["kv_tokens"]) != memory.pop(
        "kv_tokens"
    ):
        del memory["kv_bytes"]  # of another pool than the one whose tokens are told
    numbers |= memory
    if not is_quantized(names.get("quantization")):
        names.pop("quantization", None)
    return Facts(numbers, names)


def _take_flags(text: str, numbers: dict[str, float], names: dict[str, str]) -> None:
    for name, spellings in _NUMBERS.items():
        found = _setting(text, spellings, r"(\d{1,9})\b")
        if found is not None:
            numbers[name] = float(found)
    for name, spellings in _NAMES.items():
        found = _setting(text, spellings, r"['\"]?(?:torch\.)?([^'\",(){}\s]{1,200})")
        if found is not None and found != "auto":
            names[name] = found


def _setting(text: str, spellings: Sequence[str], value: str) -> str | None:
    for spelling in spellings:
        found = re.search(rf"(?<![\w-])['\"]?{spelling}['\"]?\s?[=:]\s?{value}", text)
        if found is not None:
            return found.group(1)
    return None
