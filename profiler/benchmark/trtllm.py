"""Reports of `trtllm-bench throughput --report_json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stallscope.profiler.benchmark.figures import (
    MS,
    Row,
    count,
    inner,
    positive,
    ratio,
    spread,
    text,
    told,
)
from stallscope.profiler.known_devices import known_device
from stallscope.profiler.spec import Subject
from stallscope.profiler.trial import Spread, Trial

# model_dump() of its PercentileStats, in ms by then.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "mean": ("average",),
    "p50": ("p50",),
    "p90": ("p90",),
    "p99": ("p99",),
    "least": ("minimum",),
    "most": ("maximum",),
}
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_QUANTISED = {"FP8": "fp8", "W8A16": "int8", "W4A16": "int4", "W4A16_AWQ": "int4", "INT8": "int8"}
_QUANTISED |= {"NVFP4": "nvfp4", "MXFP4": "mxfp4"}


def is_report(row: Row) -> bool:
    """Tell whether a row is such a report."""
    performance = inner(row, "performance")
    return "request_throughput_req_s" in performance and bool(inner(row, "request_info"))


def trials(row: Row, source: str) -> Iterator[Trial]:
    """Read a report. It does not say which concurrency was offered, only how many were in flight.

    Without --streaming there is no TTFT and no TPOT.
    """
    asked, seen = inner(row, "request_info"), inner(row, "performance")
    completed = count(asked, "num_requests")
    duration = positive(seen, "total_latency_ms")
    read, written = positive(asked, "avg_input_length"), positive(asked, "avg_output_length")
    rate = positive(seen, "request_throughput_req_s")
    both = positive(seen, "system_total_throughput_tok_s")
    output_s = positive(seen, "system_output_throughput_tok_s")
    yield Trial(
        source=source,
        completed=completed,
        duration_s=None if duration is None else duration * MS,
        input_tokens=read,
        output_tokens=written,
        input_tokens_per_s=both - output_s if both and output_s and both > output_s else None,
        output_tokens_per_s=output_s,
        requests_per_s=rate or ratio(completed, None if duration is None else duration * MS),
        in_flight=positive(asked, "avg_num_concurrent_requests"),
        tokens_per_step=_accepted(row),
        speculative=bool(inner(row, "decoding_stats")) or None,
        latency=_latency(row, completed),
    )


def subject(row: Row) -> Subject:
    """Return what the report says of engine, device and settings."""
    engine, world, machine = inner(row, "engine"), inner(row, "world_info"), inner(row, "machine")
    quantised = text(engine, "quantization")
    kv = text(engine, "kv_cache_dtype")
    plain = _DTYPES.get(text(engine, "dtype") or "")
    return Subject(
        device=known_device(text(machine, "name") or "", None),
        num_devices=count(world, "world_size") or 1,
        dtype=_QUANTISED.get(quantised) if quantised else plain,
        kv_dtype=_QUANTISED.get(kv) if kv else None,
        engine="tensorrt-llm",
        max_num_seqs=count(world, "max_batch_size") or None,
        max_num_batched_tokens=count(world, "max_num_tokens") or None,
    )


def model(row: Row) -> str | None:
    """Name the model."""
    return text(inner(row, "engine"), "model", "model_path")


def _accepted(row: Row) -> float | None:
    return positive(inner(row, "decoding_stats", "acceptance_length_percentiles"), "average")


def _latency(row: Row, completed: int | None) -> dict[str, Spread]:
    seen, streamed = inner(row, "performance"), inner(row, "streaming_metrics")
    spreads = {
        "ttft_s": spread(inner(streamed, "ttft_percentiles"), _NAMES, MS, completed),
        "tpot_s": spread(inner(streamed, "tpot_percentiles"), _NAMES, MS, None),
        "e2e_s": spread(inner(seen, "request_latency_percentiles_ms"), _NAMES, MS, completed),
    }
    means = {
        "ttft_s": positive(streamed, "avg_ttft_ms"),
        "tpot_s": positive(streamed, "avg_tpot_ms"),
        "e2e_s": positive(seen, "avg_request_latency_ms"),
    }
    found = told(spreads)
    lone = {m: Spread(mean=v * MS) for m, v in means.items() if v and m not in found}
    return {m: {**found, **lone}[m] for m in spreads if m in {**found, **lone}}
