"""vLLM's metrics, of version 0, V1, and 0.25 and later.

Names: vllm/engine/metrics.py (version 0: gpu_cache_usage_perc, num_requests_swapped, no label
`engine`) and vllm/v1/metrics/loggers.py (V1: `engine` is the data-parallel rank; the cache gauge
was renamed to kv_cache_usage_perc, gpu_prefix_cache_* to prefix_cache_*, and
time_per_output_token_seconds, one observation a token, to inter_token_latency_seconds). Ray writes
"ray_vllm_" for "vllm:". The estimated_* counters stand still unless --enable-mfu-metrics is given.
"""

from __future__ import annotations

import re

from stallscope.profiler.metrics_page.table import Table, Values, total


def _finish(values: Values) -> None:
    by_reason = total(values, ("_waiting_capacity", "waiting_deferred"))
    if "waiting" not in values and by_reason is not None:
        values["waiting"] = by_reason
    if "waiting" in values:
        values["waiting"] += values.get("swapped", 0.0)


VLLM = Table(
    engine="vllm",
    prefix=re.compile(r"(?:[a-z]+_)?vllm[:_]"),
    gauges={
        "running": ("num_requests_running",),
        "waiting": ("num_requests_waiting",),
        "swapped": ("num_requests_swapped",),
        "waiting_deferred": ("num_requests_waiting_by_reason{reason=deferred}",),
        "_waiting_capacity": ("num_requests_waiting_by_reason{reason=capacity}",),
        "kv_used_fraction": ("kv_cache_usage_perc", "gpu_cache_usage_perc"),
    },
    counters={
        "input_tokens_total": ("prompt_tokens",),
        "output_tokens_total": ("generation_tokens",),
        "cached_tokens_total": ("prompt_tokens_cached",),
        "preemptions_total": ("num_preemptions",),
        "finished_total": ("request_success",),
        "prefix_hits_total": ("prefix_cache_hits", "gpu_prefix_cache_hits"),
        "prefix_queries_total": ("prefix_cache_queries", "gpu_prefix_cache_queries"),
        "estimated_flops_total": ("estimated_flops_per_gpu",),
        "estimated_read_bytes_total": ("estimated_read_bytes_per_gpu",),
        "estimated_write_bytes_total": ("estimated_write_bytes_per_gpu",),
    },
    seconds={
        "ttft_s": ("time_to_first_token_seconds",),
        "itl_s": ("inter_token_latency_seconds", "time_per_output_token_seconds"),
        "tpot_s": ("request_time_per_output_token_seconds",),
        "e2e_s": ("e2e_request_latency_seconds",),
        "queue_s": ("request_queue_time_seconds", "time_in_queue_requests"),
        "prefill_s": ("request_prefill_time_seconds",),
        "decode_s": ("request_decode_time_seconds",),
    },
    labels={
        "block_size": ("cache_config_info.block_size",),
        "kv_blocks": ("cache_config_info.num_gpu_blocks",),
        "kv_blocks_override": ("cache_config_info.num_gpu_blocks_override",),
        "kv_tokens": ("cache_config_info.kv_cache_size_tokens",),
        "max_concurrency": ("cache_config_info.kv_cache_max_concurrency",),
        "kv_bytes": ("cache_config_info.kv_cache_memory_bytes",),
        "kv_dtype": ("cache_config_info.cache_dtype",),
        "prefix_caching": ("cache_config_info.enable_prefix_caching",),
    },
    finish=_finish,
)
