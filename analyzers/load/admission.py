"""Which admission limit stood at its cap while something waited."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from stallscope.analyzers.load.prompt_rate import is_flat
from stallscope.analyzers.load.queue_head import head_needs
from stallscope.analyzers.load.queue_limits import LIMIT_CLASS, Admission
from stallscope.analyzers.load.room import AT_CAP, Room
from stallscope.analyzers.load.sampled_admission import from_samples
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.ranks import engine_steps
from stallscope.profiler.capture import Capture, Step
from stallscope.profiler.spec import Subject


def room_of_step(step: Step, subject: Subject, head_need: int | None) -> Room:
    """Take the figures of a step."""
    cap = subject.max_num_seqs
    return Room(step.running, cap, step.kv_used_bytes, step.kv_total_bytes, head_need)


def limit_of_step(step: Step, subject: Subject, head_need: int | None) -> str:
    """Name the limit that kept the queue's head out in one step.

    The engine's own word comes first; else free KV against the head's need, then running against
    the sequence cap, then scheduled tokens against the token budget.
    """
    if step.blocked_by is not None:
        return step.blocked_by if step.blocked_by in LIMIT_CLASS else "unknown"
    room = room_of_step(step, subject, head_need)
    if room.kv_is_short:
        return "kv"
    if room.is_at_cap:
        return "seqs"
    tokens = step.prefill_tokens + step.decode_requests + (step.padded_tokens or 0)
    budget = subject.max_num_batched_tokens
    if budget is not None and step.prefill_tokens and tokens >= AT_CAP * budget:
        return "tokens"
    return "stalled" if tokens == 0 and room.is_under_caps else "unknown"


def _limits(capture: Capture, waiting: Sequence[Step], per_token: int | None) -> list[str]:
    needs = head_needs(capture, [(s.start_ns, s.end_ns) for s in waiting], per_token)
    subject = capture.subject
    limits = [limit_of_step(s, subject, n) for s, n in zip(waiting, needs, strict=True)]
    if not is_flat([(s.end_ns - s.start_ns, s.prefill_tokens) for s in waiting]):
        return limits
    rooms = [room_of_step(s, subject, n) for s, n in zip(waiting, needs, strict=True)]
    return [
        "prefill" if limit == "unknown" and room.is_under_caps and not step.blocked_by else limit
        for limit, room, step in zip(limits, rooms, waiting, strict=True)
    ]


def _from_steps(
    capture: Capture, steps: Sequence[Step], kv_bytes_per_token: int | None
) -> Admission | None:
    waiting = sorted((s for s in steps if s.waiting), key=lambda s: s.start_ns)
    if not waiting:
        return None
    weights: dict[str, float] = {}
    for step, limit in zip(waiting, _limits(capture, waiting, kv_bytes_per_token), strict=True):
        weights[limit] = weights.get(limit, 0.0) + step.end_ns - step.start_ns
    total = sum(weights.values()) or 1.0
    whole = sum(s.end_ns - s.start_ns for s in steps) or 1
    has_word = any(s.blocked_by is not None for s in waiting)
    return Admission(
        shares={k: v / total for k, v in weights.items()},
        share_waiting=total / whole,
        provenance="measured" if has_word else "derived",
        source="the scheduler's own word in each step"
        if has_word
        else "gauges against the engine's limits",
    )


def sees_queue(steps: Sequence[Step]) -> bool:
    """Tell whether every step says what waited."""
    return bool(steps) and all(s.waiting is not None for s in steps)


def observe_admission(
    capture: Capture, span: Span, kv_bytes_per_token: int | None
) -> Admission | None:
    """Measure which limit held the queue in a span; None when nothing waited or nothing tells."""
    steps = [s for s in capture.steps if not s.warmup and span.overlap_ns(s.start_ns, s.end_ns)]
    if sees_queue(steps):
        found = _from_steps(capture, engine_steps(steps), kv_bytes_per_token)
    else:
        found = from_samples(capture, span, kv_bytes_per_token)
    return None if found is None else dataclasses.replace(found, cap=capture.subject.max_num_seqs)
