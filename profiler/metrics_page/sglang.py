"""SGLang's metrics, old and new.

Names: python/sglang/srt/metrics/collector.py and docs/references/production_metrics.md. The prefix
was "sglang:", and is "sglang_" from 0.5.4 on. Old versions have time_per_output_token_seconds, one
observation a token, where new ones have inter_token_latency_seconds. Token counters of finished
requests jump when one ends; realtime_tokens_total, where it exists, moves all the while.
"""

from __future__ import annotations

import re

from stallscope.profiler.metrics_page.table import Table, Values, total

# Queues beside the scheduler's own: those not held back by room, and those that are.
_DEFERRED = ("_grammar_queue", "_prefill_bootstrap_queue", "_decode_transfer_queue")
_FOR_ROOM = ("_decode_prealloc_queue",)


def _finish(values: Values) -> None:
    deferred = total(values, _DEFERRED)
    if deferred is not None:
        values["waiting_deferred"] = deferred
    if "waiting" in values:
        values["waiting"] += total(values, (*_DEFERRED, *_FOR_ROOM)) or 0.0
    computed = total(values, ("_prefilled_tokens_total", "_prefill_cached_tokens_total"))
    if computed is not None:
        values["input_tokens_total"] = computed


SGLANG = Table(
    engine="sglang",
    prefix=re.compile(r"(?:[a-z]+_)?sglang[:_]"),
    gauges={
        "running": ("num_running_reqs",),
        "waiting": ("num_queue_reqs",),
        "_grammar_queue": ("num_grammar_queue_reqs",),
        "_prefill_bootstrap_queue": (
            "num_prefill_bootstrap_queue_reqs",
            "num_prefill_prealloc_queue_reqs",
        ),
        "_decode_prealloc_queue": ("num_decode_prealloc_queue_reqs",),
        "_decode_transfer_queue": ("num_decode_transfer_queue_reqs",),
        "kv_used_fraction": ("token_usage",),
        "prefix_hit_fraction": ("cache_hit_rate",),
    },
    counters={
        "input_tokens_total": ("prompt_tokens",),
        "_prefilled_tokens_total": ("realtime_tokens{mode=prefill_compute}",),
        "_prefill_cached_tokens_total": ("realtime_tokens{mode=prefill_cache}",),
        "output_tokens_total": ("realtime_tokens{mode=decode}", "generation_tokens"),
        "cached_tokens_total": ("realtime_tokens{mode=prefill_cache}", "cached_tokens"),
        "preemptions_total": ("num_retracted_requests",),
        "finished_total": ("num_requests",),
    },
    seconds={
        "ttft_s": ("time_to_first_token_seconds",),
        "itl_s": ("inter_token_latency_seconds", "time_per_output_token_seconds"),
        "e2e_s": ("e2e_request_latency_seconds",),
        "queue_s": ("queue_time_seconds",),
    },
    settings={
        "kv_tokens": ("max_total_num_tokens",),
        "block_size": ("page_size",),
        "kv_blocks": ("num_pages",),
    },
    labels={
        "block_size": ("cache_config_info.page_size",),
        "kv_blocks": ("cache_config_info.num_pages",),
    },
    finish=_finish,
)
