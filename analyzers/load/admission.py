"""Which admission limit stood at its cap while something waited."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.analyzers.load.demand import Span, gauges
from stallscope.profiler.capture import Capture, EngineSample, Step
from stallscope.profiler.evidence import Provenance
from stallscope.profiler.spec import Subject

# The limit, as the scheduler names it, and the class of a run that it holds back.
LIMIT_CLASS = {
    "kv": "capacity",
    "seqs": "scheduling",
    "tokens": "compute",
    "stalled": "scheduling",
    "front": "host",
}
# What held the queue, as a clause that goes on with how much of the waiting time.
LIMIT_HELD = {
    "kv": "KV room was short for",
    "seqs": "running requests stood at the sequence cap for",
    "tokens": "prompts used up the token budget for",
    "stalled": "the engine made no progress for",
    "front": "requests stood in front of the scheduler for",
}
_MIN_RATES = 4  # fewer intervals do not show whether a rate is steady
_FLAT = 0.25  # a rate whose spread is within this fraction of its mean is flat
_AT_CAP = 0.95  # a budget counts as used up at this fraction: the rest is too small for a request


@dataclass(frozen=True, slots=True)
class Admission:
    """Share of the waiting time (samples in which something waited) under each limit.

    Keys are those of LIMIT_CLASS and "unknown". `share_waiting` is the part of the span in which
    something waited.
    """

    shares: dict[str, float]
    share_waiting: float
    provenance: Provenance
    source: str

    def ranked(self) -> tuple[tuple[str, float], ...]:
        """The limits, largest share first."""
        return tuple(sorted(self.shares.items(), key=lambda item: (-item[1], item[0])))


def _kv_is_short(step: Step, head_need_bytes: int | None) -> bool:
    if step.kv_used_bytes is None or not step.kv_total_bytes:
        return False
    free = step.kv_total_bytes - step.kv_used_bytes
    if head_need_bytes is not None:
        return free < head_need_bytes
    return step.kv_used_bytes >= _AT_CAP * step.kv_total_bytes


def limit_of_step(step: Step, subject: Subject, head_need_bytes: int | None) -> str:
    """Name the limit that kept the queue's head out in one step.

    The engine's own word comes first; else free KV against the head's need, then running against
    the sequence cap, then scheduled tokens against the token budget.
    """
    if step.blocked_by is not None:
        return step.blocked_by if step.blocked_by in LIMIT_CLASS else "unknown"
    if _kv_is_short(step, head_need_bytes):
        return "kv"
    if subject.max_num_seqs is not None and (step.running or 0) >= subject.max_num_seqs:
        return "seqs"
    tokens = step.prefill_tokens + step.decode_requests
    budget = subject.max_num_batched_tokens
    if budget is not None and step.prefill_tokens and tokens >= _AT_CAP * budget:
        return "tokens"
    if tokens == 0:
        return "stalled"
    return "unknown"


def _from_steps(steps: Sequence[Step], subject: Subject, need: int | None) -> Admission | None:
    waiting = [s for s in steps if s.waiting]
    if not waiting:
        return None
    weights: dict[str, float] = {}
    for step in waiting:
        limit = limit_of_step(step, subject, need)
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


def _series(samples: Sequence[EngineSample], span: Span) -> dict[int, dict[str, float]]:
    rows: dict[int, dict[str, float]] = {}
    for sample in samples:
        if span.start_ns <= sample.t_ns <= span.end_ns:
            rows.setdefault(sample.t_ns, {})[sample.name] = sample.value
    return rows


def _limit_of_sample(row: dict[str, float], subject: Subject, progress: bool | None) -> str:
    if row.get("front_waiting", 0.0) > row["waiting"]:
        return "front"
    used, total = row.get("kv_used_bytes"), row.get("kv_total_bytes")
    if used is not None and total and used >= _AT_CAP * total:
        return "kv"
    if subject.max_num_seqs is not None and row["running"] >= subject.max_num_seqs:
        return "seqs"
    if progress is False and used is not None:
        return "stalled"
    return "unknown"


def _from_samples(capture: Capture, span: Span) -> Admission | None:
    rows = _series(capture.engine_samples, span)
    times = sorted(t for t, row in rows.items() if "waiting" in row and "running" in row)
    pairs = [(a, b) for a, b in zip(times, times[1:], strict=False) if _queued(rows[a])]
    flat = _is_prompt_rate_flat([(b - a, rows[a], rows[b]) for a, b in pairs])
    weights: dict[str, float] = {}
    for now, after in pairs:
        limit = _limit_of_sample(rows[now], capture.subject, _progress(rows[now], rows[after]))
        limit = "tokens" if limit == "unknown" and flat else limit
        weights[limit] = weights.get(limit, 0.0) + after - now
    total = sum(weights.values())
    if not total:
        return None
    shares = {k: v / total for k, v in weights.items()}
    waiting = total / (times[-1] - times[0])
    return Admission(shares, waiting, "derived", "sampled gauges against the engine's limits")


def _queued(row: dict[str, float]) -> float:
    return row["waiting"] + row.get("front_waiting", 0.0)


def _is_prompt_rate_flat(
    intervals: Sequence[tuple[int, dict[str, float], dict[str, float]]],
) -> bool:
    """Tell whether prompts were taken in at a steady rate while something waited."""
    name = "input_tokens_total"
    rates = [(b[name] - a[name]) / ns for ns, a, b in intervals if name in a and name in b]
    if len(rates) < _MIN_RATES:
        return False
    mean = statistics.fmean(rates)
    return mean > 0 and statistics.pstdev(rates) <= _FLAT * mean


def _progress(now: dict[str, float], after: dict[str, float]) -> bool | None:
    """Tell whether tokens came out between two samples; None where no token counter is kept."""
    names = [n for n in ("output_tokens_total", "input_tokens_total") if n in now and n in after]
    return any(after[n] > now[n] for n in names) if names else None


def head_need_bytes(capture: Capture, kv_bytes_per_token: int | None) -> int | None:
    """Return the KV bytes that the shortest prompt needs: less than that free admits nobody."""
    if kv_bytes_per_token is None or not capture.requests:
        return None
    return min(r.input_tokens for r in capture.requests) * kv_bytes_per_token


def observe_admission(
    capture: Capture, span: Span, kv_bytes_per_token: int | None
) -> Admission | None:
    """Measure which limit held the queue in a span; None when nothing waited or nothing tells."""
    steps = [s for s in capture.steps if not s.warmup and span.overlap_ns(s.start_ns, s.end_ns)]
    if steps and all(s.waiting is not None for s in steps):
        need = head_need_bytes(capture, kv_bytes_per_token)
        return _from_steps(steps, capture.subject, need)
    return _from_samples(capture, span) if gauges(capture, span) else None
