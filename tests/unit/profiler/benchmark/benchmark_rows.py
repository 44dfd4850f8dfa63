"""Results as each tool writes them, with figures made up by hand so that they divide evenly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stallscope.profiler.capture import Capture
from stallscope.profiler.reading import read_input
from stallscope.profiler.trial import Trial, trials_from_json

# vllm bench serve: 40 requests of 100 + 20 tokens in 10 s.
VLLM: dict[str, Any] = {
    "date": "20260301-120010",
    "backend": "openai",
    "model_id": "some/model",
    "num_prompts": 42,
    "request_rate": "inf",
    "burstiness": 1.0,
    "max_concurrency": 8,
    "duration": 10.0,
    "completed": 40,
    "failed": 2,
    "total_input_tokens": 4000,
    "total_output_tokens": 800,
    "request_throughput": 4.0,
    "request_goodput:": None,
    "output_throughput": 80.0,
    "total_token_throughput": 480.0,
    "mean_ttft_ms": 100.0,
    "median_ttft_ms": 90.0,
    "p90_ttft_ms": 150.0,
    "p99_ttft_ms": 200.0,
    "mean_tpot_ms": 50.0,
    "median_tpot_ms": 49.0,
    "p99_tpot_ms": 60.0,
    "mean_itl_ms": 51.0,
    "median_itl_ms": 48.0,
    "p99_itl_ms": 70.0,
    "mean_e2el_ms": 1050.0,
    "median_e2el_ms": 1040.0,
    "p99_e2el_ms": 1200.0,
}
FAILED = {
    **{k: 0.0 if k.startswith(("mean", "median", "p9")) else v for k, v in VLLM.items()},
    **{"completed": 0, "failed": 42, "total_input_tokens": 0, "total_output_tokens": 0},
    **{"request_throughput": 0.0, "output_throughput": 0.0, "duration": 0.005},
}
SGLANG: dict[str, Any] = {
    "backend": "sglang",
    "dataset_name": "random",
    "request_rate": 4.0,
    "max_concurrency": None,
    "total_input_tokens": 1000,
    "total_output_tokens": 500,
    "mean_e2e_latency_ms": 2000.0,
    "median_e2e_latency_ms": 1900.0,
    "median_ttft_ms": 300.0,
    "median_itl_ms": 20.0,
    "output_throughput": 25.0,
    "duration": 20.0,
    "completed": 10,
    "concurrency": 1.25,
    "accept_length": 2.5,
}
TRTLLM: dict[str, Any] = {
    "engine": {
        "model": "some/model",
        "version": "1.0",
        "backend": "Pytorch",
        "dtype": "bfloat16",
        "kv_cache_dtype": "FP8",
        "quantization": None,
    },
    "machine": {"name": "NVIDIA H200", "memory.total": 140.0},
    "world_info": {"tp_size": 2, "world_size": 2, "max_batch_size": 64, "max_num_tokens": 8192},
    "request_info": {
        "num_requests": 30,
        "avg_num_concurrent_requests": 12.5,
        "avg_input_length": 128.0,
        "avg_output_length": 64.0,
    },
    "performance": {
        "total_latency_ms": 6000.0,
        "avg_request_latency_ms": 2500.0,
        "request_throughput_req_s": 5.0,
        "system_output_throughput_tok_s": 320.0,
        "system_total_throughput_tok_s": 960.0,
        "request_latency_percentiles_ms": {
            **{"p50": 2400.0, "p90": 2900.0, "p95": 3000.0, "p99": 3100.0},
            **{"minimum": 1000.0, "maximum": 3200.0, "average": 2500.0},
        },
    },
    "streaming_metrics": {
        "avg_ttft_ms": 200.0,
        "avg_tpot_ms": 36.0,
        "ttft_percentiles": {"p50": 190.0, "p90": 290.0, "p99": 310.0, "average": 200.0},
        "tpot_percentiles": {"p50": 35.0, "p90": 40.0, "p99": 44.0, "average": 36.0},
    },
    "decoding_stats": {"mode": "Eagle", "acceptance_length_percentiles": {"average": 1.5}},
    "dataset": {"num_requests": 30},
}


def _metric(unit: str, avg: float, **more: float) -> dict[str, Any]:
    return {"unit": unit, "avg": avg, **more}


AIPERF: dict[str, Any] = {
    "request_throughput": _metric("requests/sec", 5.0),
    "request_latency": _metric(
        "ms", 2000.0, min=1500.0, max=2500.0, p50=1900.0, p90=2400.0, p99=2450.0
    ),
    "time_to_first_token": _metric(
        "ms", 300.0, min=100.0, max=900.0, p50=250.0, p90=600.0, p99=800.0
    ),
    "inter_token_latency": _metric("us", 17000.0, p50=16000.0),
    "inter_chunk_latency": _metric("ms", 18.0, p50=17.5, p99=30.0, count=990),
    "output_token_throughput": _metric("tokens/sec", 500.0),
    "input_sequence_length": _metric("tokens", 550.0),
    "output_sequence_length": _metric("tokens", 100.0),
    "request_count": _metric("requests", 50.0),
    "error_request_count": _metric("requests", 3.0),
    "benchmark_duration": _metric("sec", 10.0),
    "min_request_timestamp": _metric("ns", 1_700_000_000_000_000_000),
    "input_config": {
        "endpoint": {"model_names": ["some/model"]},
        "loadgen": {"concurrency": 16},
    },
}
GENAI_CSV = """\
Metric,avg,min,max,p99,p90,p50
Time To First Token (ms),"1,300.00",100.00,2500.00,2400.00,2000.00,1200.00
Inter Token Latency (ms),20.00,18.00,25.00,24.00,22.00,19.50
Request Latency (s),4.00,3.00,5.00,4.90,4.70,3.90
Output Sequence Length (tokens),136.00,100.00,200.00,199.00,180.00,130.00
Input Sequence Length (tokens),550.00,550.00,550.00,550.00,550.00,550.00

Metric,Value
Output Token Throughput (tokens/sec),272.00
Request Throughput (requests/sec),2.00
Request Count (count),60.00
"""


def _told(mean: float, median: float, p90: float, p99: float, least: float, most: float) -> Any:
    spread = {"mean": mean, "median": median, "min": least, "max": most}
    return {"successful": {**spread, "percentiles": {"p50": median, "p90": p90, "p99": p99}}}


GUIDELLM: dict[str, Any] = {
    "metadata": {"version": 1, "guidellm_version": "0.5.0"},
    "args": {"model": "some/model", "profile": "concurrent"},
    "benchmarks": [
        {
            "type_": "generative_benchmark",
            "config": {"strategy": {"type_": "concurrent", "streams": 4, "max_concurrency": 4}},
            "scheduler_metrics": {
                "request_start_time": 1_700_000_000.0,
                "request_end_time": 1_700_000_050.0,
                "requests_made": {"successful": 100, "errored": 0, "total": 100},
                "request_time_avg": 1.9,
            },
            "metrics": {
                "request_totals": {"successful": 90, "errored": 1, "incomplete": 0, "total": 91},
                "request_latency": _told(1.9, 1.8, 2.2, 2.5, 1.5, 2.6),
                "prompt_token_count": _told(100.0, 100.0, 100.0, 100.0, 100.0, 100.0),
                "output_token_count": _told(50.0, 50.0, 50.0, 50.0, 50.0, 50.0),
                "time_to_first_token_ms": _told(80.0, 75.0, 120.0, 200.0, 40.0, 250.0),
                "time_per_output_token_ms": _told(38.0, 36.0, 44.0, 50.0, 30.0, 52.0),
                "inter_token_latency_ms": _told(37.0, 35.0, 43.0, 49.0, 29.0, 51.0),
            },
            "requests": {"successful": None},
            "start_time": 1_700_000_005.0,
            "end_time": 1_700_000_105.0,
            "duration": 100.0,
        }
    ],
}
LIFECYCLE: dict[str, Any] = {
    "load_summary": {
        "count": 500,
        "schedule_delay": {"mean": 2.5, "median": 2.0},
        "send_duration": 12.5,
        "requested_rate": 50.0,
        "achieved_rate": 40.0,
    },
    "successes": {
        "count": 490,
        "latency": {
            "request_latency": {
                "mean": 1.0,
                "median": 0.9,
                "p90": 1.5,
                "p99": 2.0,
                "min": 0.5,
                "max": 2.2,
            },
            "time_per_output_token": {"mean": 0.01, "median": 0.009},
            "time_to_first_token": {"mean": 0.1, "median": 0.08, "min": 0.05, "max": 0.4},
            "inter_token_latency": {"mean": 0.01, "median": 0.0001, "p99": 0.03},
        },
        "throughput": {
            **{"input_tokens_per_sec": 7000.0, "output_tokens_per_sec": 2100.0},
            **{"total_tokens_per_sec": 9100.0, "requests_per_sec": 35.0},
        },
        "prompt_len": {"mean": 200.0, "min": 190.0},
        "output_len": {"mean": 60.0, "min": 30.0},
    },
    "failures": {"count": 10, "request_latency": None},
}
OF_SERVER: dict[str, Any] = {
    "load_summary": {},
    "successes": {
        **{"count": 1000, "rate": 50.0, "queue_len": {"mean": 30}},
        **{
            "prompt_len": {"mean": 5124, "rate": 10_000.0},
            "output_len": {"mean": 1, "rate": 3000.0},
        },
        "request_latency": {"mean": 2.0, "median": 1.8, "p90": 3.0, "p99": 4.0},
        "time_to_first_token": {"mean": 1.0, "median": 0.9},
        "time_per_output_token": {"mean": 0.02},
        "kv_cache_usage_percentage": {"mean": 0.0},
    },
    "failures": {},
}
INFMAX: dict[str, Any] = {
    **{"hw": "b200", "conc": 16, "model": "some/model", "framework": "vllm", "precision": "fp8"},
    **{"spec_decoding": "mtp", "disagg": False, "isl": 1024, "osl": 512, "tp": 4},
    **{"dp_attention": "false", "tput_per_gpu": 96.0, "output_tput_per_gpu": 32.0},
    **{"input_tput_per_gpu": 64.0, "mean_ttft": 0.3, "median_ttft": 0.25, "p90_ttft": 0.5},
    **{"p99_ttft": 0.6, "mean_tpot": 0.012, "median_tpot": 0.011, "mean_itl": 0.03},
    **{"mean_e2el": 6.0, "median_e2el": 5.9},
}
AGENTIC: dict[str, Any] = {
    **{
        "hw": "no such device",
        "users": 8,
        "model": "some/model",
        "framework": "sglang",
        "precision": "fp4",
    },
    **{"disagg": None, "tp": 8, "num_requests_total": 52, "num_requests_successful": 50},
    **{"mean_qps": 0.5, "mean_ttft": 2.0, "mean_ttlt": 12.0, "median_ttlt": 11.0, "mean_itl": 0.02},
    **{"mean_input_tokens": 9000.0, "mean_output_tokens_actual": 500.0, "input_tput_tps": 4500.0},
}


def written(folder: Path, content: object, name: str = "results.json") -> Path:
    """Write rows as JSON, or a text as it is."""
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def capture_of(folder: Path, content: object) -> Capture:
    """Read rows through the front door."""
    return read_input(written(folder, content))


def trials_in(capture: Capture) -> tuple[Trial, ...]:
    """Return the trials of a capture."""
    return trials_from_json(capture.meta["benchmark"]["trials"])
