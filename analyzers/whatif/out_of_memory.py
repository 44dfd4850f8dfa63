"""What to do after a refused allocation, by the stage at which it was refused."""

from __future__ import annotations

from stallscope.analyzers.result import Remedy, WontHelp

_CHECK = "run again: no allocation is refused; stallscope plan shows beforehand what fits"
_EVIDENCE = ("memory_used", "allocation_failures")
_SMALLER_WEIGHTS = Remedy(
    "load the weights in a smaller dtype",
    {
        "stallscope": "--dtype bf16",
        "vllm": "--quantization fp8",
        "sglang": "--quantization fp8",
        "llama.cpp": "a Q4_K_M file",
    },
    None,
    _CHECK,
    _EVIDENCE,
)
_MORE_DEVICES = Remedy(
    "spread the model over more devices",
    {"vllm": "--tensor-parallel-size", "sglang": "--tp-size"},
    None,
    _CHECK,
    _EVIDENCE,
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
)
_SMALLER_STEPS = Remedy(
    "put fewer tokens into a step: activations grow with them",
    {
        "stallscope": "--max-num-batched-tokens",
        "vllm": "--max-num-batched-tokens",
        "sglang": "--chunked-prefill-size",
    },
    None,
    _CHECK,
    _EVIDENCE,
)
_BY_STAGE = {
    "weights": (_SMALLER_WEIGHTS, _MORE_DEVICES),
    "kv": (_SMALLER_POOL, _SMALLER_WEIGHTS),
}


def remedies_after_refusal(stage: str | None) -> tuple[Remedy, ...]:
    """List what makes room at a stage; by default, while a step runs."""
    return _BY_STAGE.get(stage or "", (_SMALLER_STEPS, _SMALLER_POOL))


WONT_HELP_AFTER_REFUSAL = (
    WontHelp("giving the KV cache more room", "memory ran out already; a larger pool takes more"),
    WontHelp("raising the sequence cap", "more running requests need more memory"),
)
