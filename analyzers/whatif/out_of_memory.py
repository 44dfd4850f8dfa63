"""What to do after a refused allocation, by the stage at which it was refused."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.event_fields import number
from stallscope.analyzers.refusals import ROOM_MEASURES, buffer_of
from stallscope.analyzers.result import Remedy, WontHelp
from stallscope.analyzers.weights_alone import ALONE, advised_stage, fits_in
from stallscope.analyzers.whatif.engine_flags import DEVICES, IN_4, IN_8, TOKEN_BUDGET
from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.spec import DTYPE_BYTES

_CHECK = "run again: no allocation is refused; stallscope plan shows beforehand what fits"
_EVIDENCE = ("memory_used", "allocation_failures")
_SMALLER_WEIGHTS = Remedy(
    "load the weights in a smaller dtype",
    IN_8,
    None,
    _CHECK,
    _EVIDENCE,
    cost="a quality to be checked",
)
_MORE_DEVICES = Remedy(
    "spread the model over more devices",
    DEVICES,
    None,
    _CHECK,
    _EVIDENCE,
    cost="more GPUs, and communication in every layer",
)
_SMALLER_POOL = Remedy(
    "ask for a smaller KV cache",
    {
        "stallscope": "--kv-budget",
        "vllm": "--gpu-memory-utilization (lower) or --max-model-len",
        "sglang": "--mem-fraction-static (lower)",
    },
    None,
    _CHECK,
    _EVIDENCE,
    cost="fewer requests at once, or shorter ones",
)
_SMALLER_STEPS = Remedy(
    "put fewer tokens into a step: activations grow with them",
    TOKEN_BUDGET,
    None,
    _CHECK,
    _EVIDENCE,
    cost="prompts take more steps: TTFT grows a little",
)
_FEWER_ROWS = Remedy(
    "run fewer sequences at once, or draft fewer tokens for each: every one is a row of logits "
    "over the whole vocabulary, for which the KV cache's size leaves no room",
    {
        "vllm": "--max-num-seqs (lower), num_speculative_tokens (lower); for prompt_logprobs "
        "--max-num-batched-tokens (lower)",
        "sglang": "--max-running-requests (lower), --speculative-num-draft-tokens (lower)",
    },
    None,
    _CHECK,
    _EVIDENCE,
    cost="fewer requests at once, or less gained by speculation",
)
_LARGER_SHARE = Remedy(
    "let the engine use more of the device, as nothing was left for the KV cache",
    {
        "vllm": "--gpu-memory-utilization (higher) or --max-model-len (lower)",
        "sglang": "--mem-fraction-static (higher)",
    },
    None,
    _CHECK,
    _EVIDENCE,
    cost="less left for activations, and for other processes on the GPU",
)
_SHORTER = Remedy(
    "take requests no longer than the KV cache holds, or let the engine use more of the device",
    {"vllm": "--max-model-len (lower) or --gpu-memory-utilization (higher)"},
    None,
    _CHECK,
    _EVIDENCE,
    cost="longer requests are refused; or less is left for activations and other processes",
)
_MORE_HOST = Remedy(
    "give the process more of the host's memory: raise the container's limit, or keep less there",
    {
        "vllm": "--swap-space (lower), --cpu-offload-gb (lower)",
        "sglang": "--cpu-offload-gb (lower)",
        "llama.cpp": "--n-gpu-layers (higher)",
    },
    None,
    "run again: the system kills nothing; watch the host's free memory beside the device's",
    _EVIDENCE,
    cost="memory that others on the host do not have",
)
_BY_STAGE = {
    "start": (_SMALLER_POOL,),
    "starting": (_SMALLER_STEPS, _SMALLER_WEIGHTS, _SMALLER_POOL),
    "weights": (_SMALLER_WEIGHTS, _MORE_DEVICES),
    ALONE: (_SMALLER_WEIGHTS, _MORE_DEVICES),
    # The KV cache comes later: what is asked for it is not held yet.
    "profile": (_SMALLER_STEPS, _SMALLER_WEIGHTS, _MORE_DEVICES),
    "kv": (_SMALLER_POOL, _SMALLER_WEIGHTS),
    "kv_sizing": (_LARGER_SHARE, _SMALLER_WEIGHTS, _MORE_DEVICES),
    "graphs": (_SMALLER_POOL, _SMALLER_STEPS),
}


def remedies_after_refusal(stage: str | None, buffer: str | None = None) -> tuple[Remedy, ...]:
    """List what makes room at a stage, by default while a step runs, or for a known buffer."""
    if buffer == "host":
        return (_MORE_HOST,)
    if buffer == "logits":
        return (_FEWER_ROWS, _SMALLER_POOL)
    return _BY_STAGE.get(stage or "", (_SMALLER_STEPS, _SMALLER_POOL))


_LARGER_POOL = WontHelp(
    "giving the KV cache more room", "memory ran out already; a larger pool takes more"
)
_NO_POOL_YET = WontHelp(
    "asking for a smaller KV cache", "it is allocated later: at this stage none is held"
)
_NO_POOL_AT_ALL = WontHelp(
    "asking for a smaller KV cache", "the weights alone do not fit, with no KV cache at all"
)
_HIGHER_CAP = WontHelp("raising the sequence cap", "more running requests need more memory")


def wont_help_after_refusal(stage: str | None) -> tuple[WontHelp, ...]:
    """List what makes it worse; an engine that found no room for its cache was refused nothing."""
    if stage == "kv_sizing":
        return (_HIGHER_CAP,)
    if stage == ALONE:
        return (_LARGER_POOL, _HIGHER_CAP, _NO_POOL_AT_ALL)
    early = (_NO_POOL_YET,) if stage in ("weights", "profile") else ()
    return (_LARGER_POOL, _HIGHER_CAP, *early)


class MemoryAdvice(NamedTuple):
    """What lets it start or run on, and what does not."""

    remedies: tuple[Remedy, ...]
    wont_help: tuple[WontHelp, ...]


def memory_advice(event: Event, capture: Capture, cost: CostModel | None) -> MemoryAdvice:
    """Advise after a refusal: by its stage, by whether the weights fit, and by what holds."""
    stage, dtype = advised_stage(event, capture, cost), capture.subject.dtype
    listed = remedies_after_refusal(stage, buffer_of(event))
    smaller = _smaller_weights(dtype)
    remedies = [smaller if r is _SMALLER_WEIGHTS else r for r in listed]
    found = tuple(r for r in remedies if r is not None)
    if stage == "kv_sizing" and (shorter := _shorter(event)) is not None:
        found = (shorter, *(r for r in found if r is not _LARGER_SHARE))
    if stage == ALONE and not fits_in(_next_dtype(dtype), capture, cost):
        found = (_MORE_DEVICES, *(r for r in found if r is not _MORE_DEVICES))
    if stage == ALONE:
        found = tuple(replace(r, evidence=("weights_of_memory", *_EVIDENCE)) for r in found)
    return MemoryAdvice(found, wont_help_after_refusal(stage))


def _shorter(event: Event) -> Remedy | None:
    """Return what fits into the KV cache where the engine said that some was left."""
    fits, left = number(event, "fitting_tokens"), number(event, "kv_left_bytes")
    if not fits and (left is None or left <= 0):
        return None
    if not fits:
        return _SHORTER
    flag = f"--max-model-len {fits:.0f} or --gpu-memory-utilization (higher)"
    names = (*ROOM_MEASURES.values(), *_EVIDENCE)
    return replace(_SHORTER, flag={"vllm": flag}, evidence=names)


def _smaller_weights(dtype: str | None) -> Remedy | None:
    """Return the step to fewer bits that is left: of 16, to 8; of 8, to 4; of 4, none."""
    size = DTYPE_BYTES.get(dtype or "", 4.0)
    if size <= DTYPE_BYTES["int4"]:
        return None
    flags = IN_8 if size > DTYPE_BYTES["fp8"] else IN_4
    if size <= DTYPE_BYTES["bf16"]:
        flags = {engine: flag for engine, flag in flags.items() if engine != "stallscope"}
    return replace(_SMALLER_WEIGHTS, flag=flags)


def _next_dtype(dtype: str | None) -> str:
    return "fp8" if DTYPE_BYTES.get(dtype or "", 4.0) > DTYPE_BYTES["fp8"] else "int4"
