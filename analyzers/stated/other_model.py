"""Whether a stated model is another than the capture is of: by name, size, loaded weights."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stallscope.analyzers.cost.arithmetic import num_parameters, weight_bytes
from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import ModelSpec
from stallscope.profiler.wording import figure

# Names round parameters, count those of embeddings or not, and of a vision tower or not.
_SIZE_FACTOR = 1.6
# What is loaded holds buffers, a draft model, layers that a format leaves alone.
_LOADED_FACTOR = 1.5
_FAMILIES = (
    *("llama", "qwen", "mistral", "mixtral", "deepseek", "gemma", "phi", "gpt-oss", "glm"),
    *("falcon", "opt", "pythia", "smollm", "nemotron", "olmo", "granite", "kimi", "minimax"),
)
_BILLIONS = re.compile(r"(?<![\w.])(?:(\d{1,3})x)?(\d{1,4}(?:\.\d{1,3})?)([bm])(?![a-z0-9])")


def served_name(capture: Capture) -> str | None:
    """Return the model's name as the server, its log or page, or the benchmark states it."""
    for source in ("server", "server_log", "metrics_page", "benchmark"):
        told = capture.meta.get(source)
        name = told.get("model") if isinstance(told, Mapping) else None
        if isinstance(name, str) and name:
            return name
    return None


def why_another_model(capture: Capture, model: ModelSpec) -> str | None:
    """Say what in the capture a model contradicts; None where nothing does, or nothing tells."""
    return _by_name(capture, model) or _by_weights(capture, model)


def _by_name(capture: Capture, model: ModelSpec) -> str | None:
    served = served_name(capture)
    if served is None:
        return None
    named, given = _plain(served), _plain(model.name)
    families, own = _families(named), _families(given)
    size, has = _size(named), float(num_parameters(model))
    is_other = bool(families and own and not families & own)
    if size is not None and not 1 / _SIZE_FACTOR <= has / size <= _SIZE_FACTOR:
        is_other = True
    if not is_other:
        return None
    return (
        f"{model.name} ({figure(has / 1e9)} billion parameters) was given, and the capture is of "
        f"{served}; give that one's config.json"
    )


def _plain(name: str) -> str:
    return name.rstrip("/").split("/")[-1].lower().replace("_", "-")


def _families(name: str) -> frozenset[str]:
    return frozenset(f for f in _FAMILIES if re.search(rf"(?<![a-z]){f}(?![a-z])", name))


def _size(name: str) -> float | None:
    """Return the parameters that a name tells: 8B, 135M; None for 8x7B, whose sum it does not."""
    found = [m for m in _BILLIONS.finditer(name) if m.group(1) is None]
    if not found or len(found) < len(list(_BILLIONS.finditer(name))):
        return None
    return max(float(m.group(2)) * (1e9 if m.group(3) == "b" else 1e6) for m in found)


def _by_weights(capture: Capture, model: ModelSpec) -> str | None:
    """Compare with what the log says was loaded on each device."""
    log, subject = capture.meta.get("server_log"), capture.subject
    loaded = log.get("weights_bytes") if isinstance(log, Mapping) else None
    dtype = subject.dtype or model.dtype
    if not isinstance(loaded, int | float) or loaded <= 0 or dtype is None:
        return None
    if subject.cpu_offload_bytes:
        return None
    held = weight_bytes(model, dtype, tensor_parallel=subject.num_devices)
    if 1 / _LOADED_FACTOR <= held / loaded <= _LOADED_FACTOR:
        return None
    return (
        f"{model.name} in {dtype} on {subject.num_devices} device"
        f"{'s' if subject.num_devices > 1 else ''} takes {figure(held / 2**30)} GiB on each, and "
        f"the log says that {figure(loaded / 2**30)} GiB of weights were loaded; check --model, "
        "--dtype and --gpus"
    )
