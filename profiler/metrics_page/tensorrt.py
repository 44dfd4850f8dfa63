"""TensorRT-LLM's metrics: those of its own server, and those of Triton's backend.

trtllm-serve: tensorrt_llm/metrics/collector.py ("trtllm_", at /prometheus/metrics; Dynamo writes
"trtllm:"). Old versions have server_queue_length and num_active_requests, new ones
num_requests_waiting, num_requests_running and the blocks of the cache. Triton:
inflight_batcher_llm/src/custom_metrics_reporter/custom_metrics_reporter.cc ("nv_trt_llm_", gauges
of the last pass; one metric for each group, told apart by a label).
"""

from __future__ import annotations

import re

from stallscope.profiler.metrics_page.table import Table, Values


def _schedule(values: Values) -> None:
    """Take active requests that the last pass did not schedule for waiting.

    The pass may have been the last of those it scheduled: what is no longer active does not run.
    """
    active, scheduled = values.get("_active"), values.get("_scheduled")
    if active is None:
        return
    running = active if scheduled is None else min(active, scheduled)
    values["running"] = running
    queued = values.get("_queued")
    if queued is not None or scheduled is not None:
        values["waiting"] = (queued or 0.0) + active - running


def _finish(values: Values) -> None:
    _schedule(values)
    used, most = values.get("_used_blocks"), values.get("kv_blocks")
    if used is not None and most and used <= most:
        values["kv_used_fraction"] = used / most


TRTLLM = Table(
    engine="tensorrt-llm",
    prefix=re.compile(r"trtllm[:_]"),
    gauges={
        "_active": ("num_requests_running", "num_active_requests"),
        "_queued": ("num_requests_waiting", "server_queue_length"),
        "_scheduled": ("num_scheduled_requests",),
        "_used_blocks": ("kv_cache_used_blocks",),
        "kv_used_fraction": ("kv_cache_utilization",),
        "prefix_hit_fraction": ("kv_cache_hit_rate",),
    },
    counters={
        "input_tokens_total": ("prompt_tokens",),
        "output_tokens_total": ("generation_tokens",),
        "cached_tokens_total": ("prompt_cached_tokens",),
        "finished_total": ("num_requests_completed", "request_success"),
    },
    seconds={
        "ttft_s": ("time_to_first_token_seconds",),
        "tpot_s": ("time_per_output_token_seconds",),
        "e2e_s": ("e2e_request_latency_seconds",),
        "queue_s": ("request_queue_time_seconds",),
    },
    settings={
        "max_num_seqs": ("max_num_active_requests", "max_batch_size_runtime"),
        "max_num_batched_tokens": ("max_num_tokens_runtime",),
        "kv_blocks": ("kv_cache_max_blocks",),
        "block_size": ("kv_cache_tokens_per_block",),
    },
    finish=_finish,
)
TRITON = Table(
    engine="tensorrt-llm",
    prefix=re.compile(r"nv_trt_llm_"),
    gauges={
        "_active": ("request_metrics{request_type=active}",),
        "_scheduled": ("request_metrics{request_type=scheduled}",),
        "_queued": ("request_metrics{request_type=waiting}",),
        "_used_blocks": ("kv_cache_block_metrics{kv_cache_block_type=used}",),
        "kv_used_fraction": ("kv_cache_block_metrics{kv_cache_block_type=fraction}",),
    },
    counters={
        "steps_total": ("general_metrics{general_type=iteration_counter}",),
    },
    settings={
        "max_num_seqs": ("request_metrics{request_type=max}",),
        "kv_blocks": ("kv_cache_block_metrics{kv_cache_block_type=max}",),
        "block_size": ("kv_cache_block_metrics{kv_cache_block_type=tokens_per}",),
    },
    finish=_finish,
)
