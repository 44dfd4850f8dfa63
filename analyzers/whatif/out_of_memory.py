"""What to do after a refused allocation, by the stage at which it was refused."""

from __future__ import annotations

from stallscope.analyzers.result import Remedy, WontHelp
from stallscope.analyzers.whatif.engine_flags import DEVICES, IN_8, TOKEN_BUDGET

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
_HIGHER_CAP = WontHelp("raising the sequence cap", "more running requests need more memory")


def wont_help_after_refusal(stage: str | None) -> tuple[WontHelp, ...]:
    """List what makes it worse; an engine that found no room for its cache was refused nothing."""
    if stage == "kv_sizing":
        return (_HIGHER_CAP,)
    early = (_NO_POOL_YET,) if stage in ("weights", "profile") else ()
    return (_LARGER_POOL, _HIGHER_CAP, *early)
