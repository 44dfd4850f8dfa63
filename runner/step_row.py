"""A step's capture row, worked out from its plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stallscope.analyzers.schedule import ScheduledChunk, StepPlan
from stallscope.profiler.capture import Step
from stallscope.profiler.engine_sampler import EngineState
from stallscope.profiler.spec import attention_pairs, keys_read


@dataclass(frozen=True, slots=True)
class Span:
    """A step's time, and the part of it spent in the forward pass."""

    start_ns: int
    end_ns: int
    forward_ns: int


def context(chunk: ScheduledChunk) -> int:
    """Return how many of the request's tokens the cache has seen after this chunk."""
    return chunk.start + chunk.tokens


def phase_of(plan: StepPlan) -> Literal["prefill", "decode", "mixed"]:
    """Name the step by what it holds."""
    kinds = {chunk.is_prefill for chunk in plan.chunks}
    return "mixed" if len(kinds) == 2 else "prefill" if True in kinds else "decode"


def step_row(
    step: int,
    plan: StepPlan,
    state: EngineState,
    span: Span,
    *,
    warmup: bool = False,
    window: int | None = None,
) -> Step:
    """Build a step's row; `window` is the model's sliding window."""
    prefills = [chunk for chunk in plan.chunks if chunk.is_prefill]
    return Step(
        id=step,
        rank=0,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        device_ns=span.forward_ns,
        host_ns=span.end_ns - span.start_ns - span.forward_ns,
        phase=phase_of(plan),
        warmup=warmup,
        prefill_requests=len(prefills),
        prefill_tokens=sum(chunk.tokens for chunk in prefills),
        decode_requests=len(plan.chunks) - len(prefills),
        context_tokens=sum(keys_read(c.start, c.tokens, window) for c in plan.chunks),
        waiting=state.waiting,
        running=state.running,
        kv_used_bytes=state.kv_used_bytes,
        kv_total_bytes=state.kv_total_bytes,
        attention_pairs=sum(attention_pairs(c.start, c.tokens, window) for c in plan.chunks),
        logit_rows=sum(chunk.samples for chunk in plan.chunks),
        blocked_by=plan.blocked_by,
        padded_tokens=0,  # rows are ragged: nothing is filled up
        padded_context_tokens=0,
        padded_pairs=0,
    )
