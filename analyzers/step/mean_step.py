"""A mean step of a server, as a step: of a benchmark's figures, or of samples."""

from __future__ import annotations

from stallscope.profiler.capture import Step
from stallscope.profiler.spec import attention_pairs


def mean_step(
    seconds: float, *, rows: int, context: int, prompts: int, prompt_length: float
) -> Step:
    """Return a step that decodes `rows` over `context` tokens, with `prompts` tokens beside."""
    whole = max(1, round(prompt_length))
    return Step(
        id=0,
        rank=0,
        start_ns=0,
        end_ns=round(seconds * 1e9),
        device_ns=None,
        host_ns=None,
        phase="mixed" if prompts else "decode",
        warmup=False,
        prefill_requests=-(-prompts // whole),
        prefill_tokens=prompts,
        decode_requests=rows,
        context_tokens=context + prompts,
        waiting=None,
        running=None,
        kv_used_bytes=None,
        kv_total_bytes=None,
        attention_pairs=context + prompts * attention_pairs(0, whole, None) // whole,
        logit_rows=rows,
        blocked_by=None,
    )
