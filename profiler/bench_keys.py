"""Names that benchmark clients give to what they measure, as tables of runs repeat them.

They are the keys of the JSON of `vllm bench serve` and SGLang's `bench_serving`, which have no unit
in rates, and what both print before a colon.
"""

from __future__ import annotations

import re

# A rate's own name, and the name that it has here.
RATES = {
    "output_throughput": "output_tokens_per_s",
    "output_token_throughput": "output_tokens_per_s",
    "output_tps": "output_tokens_per_s",
    "tps": "output_tokens_per_s",
    "throughput_tps": "output_tokens_per_s",
    "input_throughput": "input_tokens_per_s",
    "input_token_throughput": "input_tokens_per_s",
    "total_token_throughput": "total_tokens_per_s",
    "total_throughput": "total_tokens_per_s",
    "tokens_per_second": "output_tokens_per_s",
    "request_throughput": "requests_per_s",
    "request_goodput": "good_requests_per_s",
    "user_throughput": "user_tokens_per_s",
}
# What is counted per second, under the names that it has in front of "/s".
UNITS = {"req": "requests", "reqs": "requests", "request": "requests"}
# What a run came to besides: neither a speed of it nor something that was set.
_OUTCOMES = frozenset(
    {
        *("date", "duration", "benchmark_duration", "completed", "successful_requests", "failed"),
        *("failed_requests", "failures", "errors", "total_input_tokens", "total_output_tokens"),
        *("total_generated_tokens", "total_input", "total_output", "total_input_text_tokens"),
        *("total_output_tokens_retokenized", "max_concurrent_requests", "accept_length", "rtfx"),
        *("peak_concurrent_requests", "preemptions", "num_preemptions", "max_output_tokens_per_s"),
        *("peak_output_token_throughput", "peak_output_token_throughput_tok/s", "run_number"),
        *("avg_decoded_tokens_per_iter", "benchmark_start_time_unix", "benchmark_end_time_unix"),
    }
)
_SPREAD = re.compile(r"(?:std|stddev|stdev)_|.*_(?:std|stddev|stdev)(?:_(?:s|ms|us))?$")
# Settings whose names end as those of figures do.
SET = frozenset(
    {
        *("link_bytes_per_s", "link_gb_per_s", "memory_bytes_per_s", "memory_gb_per_s"),
        *("host_sleep_ms", "host_work_ms"),
    }
)


def keyed(title: str) -> str:
    """Spell a heading as a key of these files: "Mean TTFT (ms)" as mean_ttft_ms."""
    return re.sub(r"[\s()\[\],-]+", "_", title.strip().lower()).strip("_").removesuffix(":")


def is_outcome(title: str) -> bool:
    """Tell whether a heading names what a run came to, such as its duration or failures."""
    key = keyed(title)
    bare = re.sub(r"_(?:s|ms)$", "", key)
    return key in _OUTCOMES or bare in _OUTCOMES or bool(_SPREAD.match(key))
