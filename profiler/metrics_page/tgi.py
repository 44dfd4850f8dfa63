"""Text Generation Inference's metrics.

Names: docs/source/reference/metrics.md of huggingface/text-generation-inference. Counters have no
"_total"; tokens are only counted when a request ends, as sums of histograms. There is no gauge of
the cache.
"""

from __future__ import annotations

import re

from stallscope.profiler.metrics_page.table import Table

TGI = Table(
    engine="tgi",
    prefix=re.compile(r"tgi_"),
    gauges={
        "running": ("batch_current_size",),
        "waiting": ("queue_size",),
    },
    counters={
        "input_tokens_total": ("request_input_length_sum",),
        "output_tokens_total": ("request_generated_tokens_sum",),
        "arrived_total": ("request_count",),
        "finished_total": ("request_success",),
        "steps_total": ("batch_inference_count",),
    },
    seconds={
        "e2e_s": ("request_duration",),
        "queue_s": ("request_queue_duration",),
        "tpot_s": ("request_mean_time_per_token_duration",),
    },
)
