"""Decode's share of the time, from the requests' side and from the engine's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.analyzers.cost.operators import StepShape
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.step.shape import step_shape
from stallscope.profiler.capture import Capture, Step
from stallscope.profiler.evidence import Measure
from stallscope.profiler.spec import attention_pairs, keys_read


@dataclass(frozen=True, slots=True)
class EngineShare:
    """Decode's share of step time; mixed steps all to prefill (`low`) or all to decode (`high`)."""

    value: float
    low: float
    high: float
    is_split_by_model: bool


def from_requests(capture: Capture, costs: Sequence[StepCost]) -> Measure | None:
    """Sum of decode time over sum of prefill + decode time, over requests.

    Prefill is admission to first token. Where requests were not recorded, each step's time counts
    once for every request in it.
    """
    name, unit = "decode_share_requests", "fraction"
    prefill = decode = 0
    for r in capture.requests:
        if r.admitted_ns is not None and r.first_token_ns is not None and r.end_ns is not None:
            prefill += r.first_token_ns - r.admitted_ns
            decode += r.end_ns - r.first_token_ns
    if prefill + decode:
        source = "Σ (end − first token) ÷ Σ (end − admission)"
        return Measure(name, decode / (prefill + decode), unit, "measured", source)
    if not capture.meta.get("trace", {}).get("counted", True):
        return None  # marks that do not say how many requests they hold
    in_decode = sum(_own_s(c) * c.step.decode_requests for c in costs)
    in_prefill = sum(_own_s(c) * c.step.prefill_requests for c in costs)
    if in_decode + in_prefill == 0:
        return None
    source = "step time × requests in the step, by phase"
    return Measure(name, in_decode / (in_decode + in_prefill), unit, "derived", source)


def _own_s(c: StepCost) -> float:
    """Return a step's own time: what passes between steps is nobody's decode."""
    return (c.step.end_ns - c.step.start_ns) * 1e-9


def _decode_part_of_mixed(step: Step, cost: CostModel | None) -> float | None:
    """Return the cost model's split: decode rows priced alone over the sum of both alone."""
    if cost is None:
        return None
    window = cost.spec.sliding_window
    shape = step_shape(step, window)
    if shape is None or not shape.tokens:
        return None
    # A decode row attends to each KV entry it reads once: as many pairs as entries.
    context = _decode_context(step, shape, window)
    decode = StepShape(step.decode_requests, step.decode_requests, context, context)
    prefill = StepShape(
        step.prefill_tokens,
        max(0, shape.logit_rows - step.decode_requests),
        shape.kv_read_tokens - decode.kv_read_tokens,
        shape.attention_pairs - decode.attention_pairs,
    )
    alone = cost.step_time(decode).floor
    return alone / (alone + cost.step_time(prefill).floor)


def _decode_context(step: Step, shape: StepShape, window: int | None) -> int:
    """Return the KV entries that a mixed step's decode rows read; the rest is the prompts'.

    A chunk of p tokens reading c entries makes p·c − p(p − 1)/2 pairs, so over k chunks of p each
    pairs − context = (p − 1)·(their context) − k·p(p − 1)/2. Chunks of one token cannot be told
    from decode rows: then each request reads the same.
    """
    chunks, tokens = step.prefill_requests, step.prefill_tokens
    if tokens <= chunks:
        return round(shape.kv_read_tokens * step.decode_requests / (_requests(step) or 1))
    excess = shape.attention_pairs - shape.kv_read_tokens
    prefill = round(excess / (tokens / chunks - 1) + tokens / 2) if chunks else 0
    if window is not None and chunks:
        prefill = _windowed_prefill_reads(excess, chunks, tokens / chunks, window)
    most = shape.kv_read_tokens - step.decode_requests
    return shape.kv_read_tokens - max(tokens, min(prefill, most))


def _windowed_prefill_reads(excess: int, chunks: int, tokens: float, window: int) -> int:
    """Return what `chunks` equal chunks read, whose pairs exceed that by `excess`.

    The excess grows with what is cached before the chunk, up to a full window.
    """
    each = round(tokens)
    low, high = 0, window - 1
    while low < high:
        middle = (low + high + 1) // 2  # of two that fit, the full window is the likelier
        more = attention_pairs(middle, each, window) - keys_read(middle, each, window)
        low, high = (middle, high) if chunks * more <= excess else (low, middle - 1)
    return round(chunks * (low + tokens))


def _requests(step: Step) -> int:
    return step.decode_requests + step.prefill_requests


def from_engine(costs: Sequence[StepCost], cost: CostModel | None) -> EngineShare | None:
    """Decode's share of step time, mixed steps split by the cost model."""
    decode = sum(_own_s(c) for c in costs if c.step.phase == "decode")
    mixed = [c for c in costs if c.step.phase == "mixed"]
    total = sum(_own_s(c) for c in costs if c.step.phase in ("prefill", "decode", "mixed"))
    if not total:
        return None
    splits = [_decode_part_of_mixed(c.step, cost) for c in mixed]
    is_split = all(s is not None for s in splits)
    # Without a model a mixed step is split by requests, and the bounds tell how much that matters.
    shares = [
        s if s is not None else c.step.decode_requests / (_requests(c.step) or 1)
        for s, c in zip(splits, mixed, strict=True)
    ]
    part = sum(_own_s(c) * s for c, s in zip(mixed, shares, strict=True))
    mixed_s = sum(_own_s(c) for c in mixed)
    return EngineShare(
        (decode + part) / total, decode / total, (decode + mixed_s) / total, is_split
    )


def engine_measures(share: EngineShare) -> tuple[Measure, ...]:
    """State the engine's share and, where mixed steps widen it, its bounds.

    Without a model there are only those: a prompt's row takes other time than one of decode.
    """
    name, unit = "decode_share_engine", "fraction"
    if share.low == share.high:
        return (Measure(name, share.value, unit, "measured", "step time by phase"),)
    bounds = (
        Measure(name, share.low, unit, "bound", "mixed steps all to prefill", "lower"),
        Measure(name, share.high, unit, "bound", "mixed steps all to decode", "upper"),
    )
    if not share.is_split_by_model:
        return bounds
    source = "step time, mixed steps split by the cost model"
    return (Measure(name, share.value, unit, "estimated", source), *bounds)
