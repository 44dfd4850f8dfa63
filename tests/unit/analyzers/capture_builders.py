"""Captures made by hand: rows in milliseconds, on a toy model and device with round numbers."""

from __future__ import annotations

from typing import Any

from stallscope.profiler.capture import (
    Capture,
    DeviceSample,
    EngineSample,
    Event,
    KernelSummary,
    Request,
    Step,
)
from stallscope.profiler.spec import DeviceSpec, ModelSpec, Subject

MS = 1_000_000

# Eight linears of 64 × 64 (seven and the head): 32,768 elements, 131,072 bytes in fp32, 65,536 in
# fp16. KV: 2 · 1 layer · 1 head · 64 · 4 bytes = 512 bytes per token in fp32.
TOY_MODEL = ModelSpec("toy", 64, 64, 1, 1, 1, 64, 64, 4096)
# 147,456 bytes (weights and 32 tokens of KV) take half a millisecond.
TOY_CPU = DeviceSpec("toy cpu", {"fp32": 1e15}, 1 << 30, 294_912_000.0, "achievable", is_cpu=True)
TOY_GPU = DeviceSpec("toy gpu", {"fp32": 1e15}, 1 << 30, 294_912_000.0)
ON_CPU = Subject(model=TOY_MODEL, device=TOY_CPU, dtype="fp32")
ON_GPU = Subject(model=TOY_MODEL, device=TOY_GPU, dtype="fp32")


def step(
    index: int, start_ms: float, length_ms: float, *, phase: str = "decode", **facts: Any
) -> Step:
    """A step; by default one decode row over 32 keys, with nothing known of the engine."""
    is_prefill, is_decode = phase in ("prefill", "mixed"), phase in ("decode", "mixed")
    tokens = facts.get("prefill_tokens", 16 if is_prefill else 0)
    decodes = facts.get("decode_requests", 1 if is_decode else 0)
    row: dict[str, Any] = {
        "id": index,
        "rank": 0,
        "start_ns": round(start_ms * MS),
        "end_ns": round((start_ms + length_ms) * MS),
        "device_ns": None,
        "host_ns": None,
        "phase": phase,
        "warmup": False,
        "prefill_requests": int(is_prefill),
        "prefill_tokens": tokens,
        "decode_requests": decodes,
        "context_tokens": 32 * decodes + tokens,
        "waiting": None,
        "running": None,
        "kv_used_bytes": None,
        "kv_total_bytes": None,
        "attention_pairs": 32 * decodes + tokens * (tokens + 1) // 2,
        "logit_rows": decodes + int(is_prefill),
        "blocked_by": None,
    }
    return Step(**{**row, **facts})


def decodes(count: int, length_ms: float = 1.0, **facts: Any) -> tuple[Step, ...]:
    """Decode steps one after the other from time 0."""
    return tuple(step(i, i * length_ms, length_ms, **facts) for i in range(count))


def request(
    index: int,
    arrival_ms: float,
    admitted_ms: float | None,
    first_ms: float | None,
    end_ms: float | None,
    **facts: Any,
) -> Request:
    """A request of 16 + 8 tokens."""

    def ns(at: float | None) -> int | None:
        return None if at is None else round(at * MS)

    row: dict[str, Any] = {
        "id": index,
        "arrival_ns": round(arrival_ms * MS),
        "admitted_ns": ns(admitted_ms),
        "first_token_ns": ns(first_ms),
        "end_ns": ns(end_ms),
        "input_tokens": 16,
        "cached_tokens": None,
        "output_tokens": 8,
        "preemptions": None,
        "preempted_ns": None,
        "status": "finished" if end_ms is not None else "running",
    }
    return Request(**{**row, **facts})


def samples(name: str, *values: float, device: str = "gpu0") -> tuple[DeviceSample, ...]:
    """One reading per millisecond, from time 0."""
    return tuple(DeviceSample(i * MS, device, name, v, "fraction") for i, v in enumerate(values))


def gauges(step_ms: float = 1.0, **series: tuple[float, ...]) -> tuple[EngineSample, ...]:
    """Engine samples by name, one of each per `step_ms`, from time 0."""
    return tuple(
        EngineSample(round(i * step_ms * MS), "engine", name, float(value))
        for name, values in series.items()
        for i, value in enumerate(values)
    )


def event(kind: str, at_ms: float = 0.0, request: int | None = None, **data: Any) -> Event:
    """Something that happened."""
    return Event(round(at_ms * MS), kind, request, data)


def kernel(kernel_class: str, busy_ms: float, exposed_ms: float | None = None) -> KernelSummary:
    """Kernel time of one class."""
    exposed = None if exposed_ms is None else round(exposed_ms * MS)
    return KernelSummary("gpu0", 0, "decode", kernel_class, "k", 1, round(busy_ms * MS), exposed)


def timed_linears() -> tuple[Event, ...]:
    """The toy model's linears as probed with one row: 0.8 ms in all."""
    times = {"qkv": 0.3e-3, "o": 0.1e-3, "gate_up": 0.2e-3, "down": 0.1e-3, "lm_head": 0.1e-3}
    return tuple(event("probe", probe="linear", op=op, rows=1, time_s=s) for op, s in times.items())


def batch_one(subject: Subject = ON_CPU, count: int = 60) -> Capture:
    """Decode at batch 1, 1 ms a step, at half of what the memory can stream (MBU 0.5).

    Weights 0.8 ms as probed; KV (32 · 512 + 512 bytes) / 294,912,000 B/s = 0.0573 ms.
    """
    steps = decodes(count, device_ns=MS, host_ns=0)
    return Capture(subject=subject, steps=steps, events=timed_linears())
