"""Rows and machines small enough to work out by hand."""

from __future__ import annotations

import math
from typing import Any

from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.profiler.capture import Request, Step
from stallscope.profiler.spec import ModelSpec

MS = 1_000_000

TINY = ModelSpec(
    name="tiny",
    hidden_size=64,
    intermediate_size=160,
    num_layers=3,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    vocab_size=256,
    max_position=512,
)

# A machine without limits: a step costs its overhead and nothing else.
NO_LIMITS = Machine(peak_flops=math.inf, bytes_per_s=math.inf, kind="datasheet")


def free_model(spec: ModelSpec = TINY) -> CostModel:
    return CostModel(spec, "fp16", "fp16", NO_LIMITS)


def step(start_ms: float, end_ms: float, **fields: Any) -> Step:
    """A decode step of one request unless told otherwise; times in milliseconds."""
    row: dict[str, Any] = dict.fromkeys(Step._fields)
    row |= {"id": 0, "rank": 0, "phase": "decode", "warmup": False}
    row |= {"prefill_requests": 0, "prefill_tokens": 0, "decode_requests": 1}
    row |= {"start_ns": round(start_ms * MS), "end_ns": round(end_ms * MS)}
    return Step(**(row | fields))


def prefill(start_ms: float, end_ms: float, tokens: int, **fields: Any) -> Step:
    """A causal prefill of one prompt."""
    work = {"context_tokens": tokens, "attention_pairs": tokens * (tokens + 1) // 2}
    row = {"prefill_requests": 1, "prefill_tokens": tokens, "decode_requests": 0, "logit_rows": 1}
    return step(start_ms, end_ms, **{"phase": "prefill", **row, **work, **fields})


def decode(start_ms: float, end_ms: float, context: int, **fields: Any) -> Step:
    """A decode step of one request over `context` keys."""
    work = {"context_tokens": context, "attention_pairs": context, "logit_rows": 1}
    return step(start_ms, end_ms, **{**work, **fields})


def request(number: int, **fields: Any) -> Request:
    """A request with unknown times unless told otherwise."""
    row: dict[str, Any] = dict.fromkeys(Request._fields)
    row |= {"id": number, "arrival_ns": 0, "input_tokens": 1, "output_tokens": 1}
    return Request(**(row | {"status": "finished"} | fields))
