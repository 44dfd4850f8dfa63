"""A step's capture row, worked out from what its forward pass was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.profiler.capture import Step
from stallscope.profiler.engine_sampler import EngineState
from stallscope.profiler.spec import attention_pairs, keys_read
from stallscope.runner.forward_watch import ForwardPass, LiveRow
from stallscope.runner.step_row import Span


def pass_row(
    step: int,
    seen: ForwardPass,
    state: EngineState,
    span: Span,
    *,
    warmup: bool = False,
    blocked_by: str | None = None,
    window: int | None = None,
) -> Step:
    """Build a step's row: the live rows' work, and what was computed beyond it as padding.

    `window` is the model's sliding window.
    """
    is_prefill = seen.phase == "prefill"
    whole = LiveRow(seen.new, seen.cached)
    real, computed = _work(seen.live, window), _work([whole] * seen.rows, window)
    return Step(
        id=step,
        rank=0,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        device_ns=span.forward_ns,
        host_ns=span.end_ns - span.start_ns - span.forward_ns,
        phase=seen.phase,
        warmup=warmup,
        prefill_requests=len(seen.live) if is_prefill else 0,
        prefill_tokens=real.tokens if is_prefill else 0,
        decode_requests=0 if is_prefill else len(seen.live),
        context_tokens=real.context_tokens,
        waiting=state.waiting,
        running=state.running,
        kv_used_bytes=state.kv_used_bytes,
        kv_total_bytes=state.kv_total_bytes,
        attention_pairs=real.pairs,
        logit_rows=seen.logit_rows,
        blocked_by=blocked_by,
        padded_tokens=computed.tokens - real.tokens,
        padded_context_tokens=computed.context_tokens - real.context_tokens,
        padded_pairs=computed.pairs - real.pairs,
    )


@dataclass(frozen=True, slots=True)
class _Work:
    tokens: int
    context_tokens: int
    pairs: int


def _work(rows: Sequence[LiveRow], window: int | None) -> _Work:
    return _Work(
        tokens=sum(row.new for row in rows),
        context_tokens=sum(keys_read(row.cached, row.new, window) for row in rows),
        pairs=sum(attention_pairs(row.cached, row.new, window) for row in rows),
    )
