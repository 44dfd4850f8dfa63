"""The work of a recorded step, for the cost model."""

from __future__ import annotations

from stallscope.analyzers.cost.operators import StepShape
from stallscope.profiler.capture import Step
from stallscope.profiler.spec import attention_pairs


def step_shape(step: Step, window: int | None = None) -> StepShape | None:
    """Return the work of a step for requests, or None when its context was not recorded.

    `window` is the model's sliding window. Our engine records what lies within it; a loop that
    states whole contexts is cut to what its requests can read at most.
    """
    if step.context_tokens is None or step.attention_pairs is None:
        return None
    logit_rows = step.logit_rows
    if logit_rows is None:
        logit_rows = step.decode_requests + step.prefill_requests
    tokens = step.prefill_tokens + step.decode_requests
    read, pairs = step.context_tokens, step.attention_pairs
    if window is not None:
        read = min(read, _most_read(step, window))
        pairs = min(pairs, _most_pairs(step, read, window))
    return StepShape(tokens, logit_rows, read, pairs)


def computed_shape(step: Step, window: int | None = None) -> StepShape | None:
    """Return the work of a step with what it computed for nobody, which took its time too."""
    shape = step_shape(step, window)
    if shape is None:
        return None
    return StepShape(
        shape.tokens + (step.padded_tokens or 0),
        shape.logit_rows,
        shape.kv_read_tokens + (step.padded_context_tokens or 0),
        shape.attention_pairs + (step.padded_pairs or 0),
    )


def _most_read(step: Step, window: int) -> int:
    """A chunk reads itself and the window - 1 keys before it."""
    before = (window - 1) * (step.prefill_requests + step.decode_requests)
    return before + step.prefill_tokens + step.decode_requests


def _most_pairs(step: Step, read: int, window: int) -> int:
    if step.prefill_requests == 1 and not step.decode_requests:  # then this is exact
        cached = max(0, read - step.prefill_tokens)
        return attention_pairs(cached, step.prefill_tokens, window)
    return window * (step.prefill_tokens + step.decode_requests)
