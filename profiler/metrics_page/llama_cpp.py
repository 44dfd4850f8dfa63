"""Metrics of llama.cpp's server, which writes them with --metrics.

Names: tools/server/README.md of ggml-org/llama.cpp. kv_cache_usage_ratio was removed in 2025, when
the cache was unified; prompt_tokens_total leaves out what the cache held, which
prompt_tokens_cached_total tells since August 2026. A request runs in a slot and waits ("deferred")
for one.
"""

from __future__ import annotations

import re

from stallscope.profiler.metrics_page.table import Table, Values


def _finish(values: Values) -> None:
    if "input_tokens_total" in values:
        values["input_tokens_total"] += values.get("cached_tokens_total", 0.0)


LLAMA_CPP = Table(
    engine="llama.cpp",
    prefix=re.compile(r"llamacpp[:_]"),
    gauges={
        "running": ("requests_processing",),
        "waiting": ("requests_deferred",),
        "kv_used_fraction": ("kv_cache_usage_ratio",),
    },
    counters={
        "input_tokens_total": ("prompt_tokens",),
        "cached_tokens_total": ("prompt_tokens_cached",),
        "output_tokens_total": ("tokens_predicted",),
        "steps_total": ("n_decode",),
        "prefill_s_total": ("prompt_seconds",),
        "decode_s_total": ("tokens_predicted_seconds",),
    },
    finish=_finish,
)
