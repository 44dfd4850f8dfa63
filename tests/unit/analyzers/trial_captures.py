"""Captures of a benchmark, built from trials."""

from __future__ import annotations

from stallscope.profiler.capture import Capture, Request
from stallscope.profiler.spec import DeviceSpec, ModelSpec, Subject
from stallscope.profiler.trial import Spread, Trial, trials_to_json

# 2 layers of 4 · 1024² (attention) + 3 · 1024 · 4096 (MLP) and an LM head of 8192 · 1024 in bf16.
MODEL = ModelSpec(
    name="small",
    hidden_size=1024,
    intermediate_size=4096,
    num_layers=2,
    num_heads=8,
    num_kv_heads=8,
    head_dim=128,
    vocab_size=8192,
    max_position=4096,
)
WEIGHT_BYTES = 2 * (2 * (4 * 1024**2 + 3 * 1024 * 4096) + 8192 * 1024)  # 83.9 MB


def device(*, bytes_per_s: float, flops: float = 1e15) -> DeviceSpec:
    return DeviceSpec("a device", {"bf16": flops}, None, bytes_per_s)


def of_trials(
    *trials: Trial,
    judged: int = 0,
    subject: Subject | None = None,
    requests: tuple[Request, ...] = (),
) -> Capture:
    """Return what the reader makes of these trials."""
    told = subject or Subject(
        concurrency=trials[judged].concurrency, rate_per_s=trials[judged].rate_per_s
    )
    meta = {"benchmark": {"judged": judged, "trials": trials_to_json(trials)}}
    return Capture(subject=told, requests=requests, meta=meta)


def trial(
    *,
    ttft: float | Spread = 0.1,
    tpot: float = 0.01,
    tokens: float = 101.0,
    rate: float = 8.0,
    duration: float = 100.0,
    **more: object,
) -> Trial:
    """One of 100 + `tokens` tokens: E2E is TTFT + 100 · TPOT by default."""
    first = ttft if isinstance(ttft, Spread) else Spread(ttft, ttft)
    whole = (first.typical or 0.0) + tpot * (tokens - 1)
    latency = {"ttft_s": first, "tpot_s": Spread(tpot, tpot), "e2e_s": Spread(whole, whole)}
    told = more.pop("latency", {})
    assert isinstance(told, dict)
    fields = {
        "source": "a file",
        "completed": round(rate * duration),
        "failed": 0,
        "duration_s": duration,
        "input_tokens": 100.0,
        "output_tokens": tokens,
        "output_tokens_per_s": rate * tokens,
        "requests_per_s": rate,
        "latency": {**latency, **told},
    }
    return Trial(**{**fields, **more})  # type: ignore[arg-type]
