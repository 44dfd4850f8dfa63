"""Ranges that lie within one engine step and name a part of it.

vLLM wraps them in `record_function_or_nullcontext` (vllm/v1/utils.py): "gpu_model_runner: forward",
"schedule: allocate_slots", and in releases of 2025 bare words such as "Preprocess". Layer-wise NVTX
hooks (vLLM, SGLang, TensorRT-LLM) push a dict's text whose "Module" names the layer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

PartKind = Literal[
    "prepare", "forward", "sample", "bookkeep", "draft", "schedule", "output", "module", "other"
]

_SCOPE = re.compile(r"(?:v2_)?gpu_model_runner: ?(?P<name>[\w ./]+)$")
_SCHEDULE = re.compile(r"schedule: ?\w+")
_OUTPUT = re.compile(r"llm_engine step: ?\w+")
_MODULE = re.compile(r"\{'Module': '([^']*)'")
_BARE = {"Preprocess", "Forward", "Postprocess", "Sample", "Bookkeep", "Draft", "EPLB"}

# First match wins; words of vLLM's scopes in both model runners.
_KINDS: tuple[tuple[str, PartKind], ...] = (
    ("forward", "forward"),
    ("draft", "draft"),
    ("sample", "sample"),
    ("logits", "sample"),
    ("preprocess", "prepare"),
    ("prepare", "prepare"),
    ("dispatch", "prepare"),
    ("state_update", "prepare"),
    ("embeddings", "prepare"),
    ("bookkeep", "bookkeep"),
    ("postprocess", "bookkeep"),
    ("logprobs", "bookkeep"),
    ("output", "output"),
)


@dataclass(frozen=True, slots=True)
class StepPart:
    """A part of a step; `name` is the scope's own word, or the module's path."""

    kind: PartKind
    name: str


def step_part(text: str) -> StepPart | None:
    """Read a range's text; None where it names no part of a step that we know."""
    module = _MODULE.match(text)
    if module is not None:
        return StepPart("module", module[1])
    if _SCHEDULE.match(text):
        return StepPart("schedule", text.partition(":")[2].strip())
    if _OUTPUT.match(text):
        return StepPart("output", text.partition(":")[2].strip())
    scope = _SCOPE.match(text)
    if scope is None and text not in _BARE:
        return None
    name = (text if scope is None else scope["name"]).strip()
    return StepPart(_kind(name.lower()), name)


def _kind(name: str) -> PartKind:
    return next((kind for word, kind in _KINDS if word in name), "other")
