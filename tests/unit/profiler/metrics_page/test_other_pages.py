"""Pages of SGLang, TensorRT-LLM, Triton, TGI and llama.cpp: every quantity of every variant."""

from __future__ import annotations

import pytest
from metrics_pages import page, scraped, told, unseen

SGLANG_OLD = {
    "prompt_tokens_total": 800.0,
    "generation_tokens_total": 700.0,
    "token_usage": 0.28,
    "cache_hit_rate": 0.75,
    "time_to_first_token_seconds_sum": 20.0,
    "time_to_first_token_seconds_count": 10.0,
    "e2e_request_latency_seconds_sum": 30.0,
    "e2e_request_latency_seconds_count": 10.0,
    "time_per_output_token_seconds_sum": 70.0,
    "time_per_output_token_seconds_count": 690.0,
    'func_latency_seconds_sum{name="generate_request"}': 4.5,
    "num_running_reqs": 16.0,
    "num_used_tokens": 1200.0,
    "gen_throughput": 86.5,
    "num_queue_reqs": 28.0,
}


def test_sglang_as_it_was() -> None:
    capture = scraped(page("sglang:", SGLANG_OLD, 'model_name="a/b"'))
    assert told(capture) == {
        "input_tokens_total": 800,
        "output_tokens_total": 700,
        "kv_used_fraction": 0.28,
        "prefix_hit_fraction": 0.75,
        "ttft_s_sum": 20,
        "ttft_s_count": 10,
        "e2e_s_sum": 30,
        "e2e_s_count": 10,
        "itl_s_sum": 70,
        "itl_s_count": 690,
        "running": 16,
        "waiting": 28,
    }
    assert (capture.subject.engine, capture.subject.workload) == ("sglang", "serving a/b")


def sglang_new(tp_rank: int, dp_rank: int, running: float) -> str:
    values = {
        "num_running_reqs": running,
        "num_queue_reqs": 4.0,
        "num_grammar_queue_reqs": 1.0,
        "num_prefill_bootstrap_queue_reqs": 2.0,
        "num_prefill_inflight_queue_reqs": 50.0,
        "num_decode_prealloc_queue_reqs": 3.0,
        "num_decode_transfer_queue_reqs": 5.0,
        "token_usage": 0.5,
        "max_total_num_tokens": 4096.0,
        "num_retracted_requests_total": 6.0,
        'realtime_tokens_total{mode="prefill_compute"}': 300.0,
        'realtime_tokens_total{mode="prefill_cache"}': 100.0,
        'realtime_tokens_total{mode="decode"}': 250.0,
        "queue_time_seconds_sum": 8.0,
        "queue_time_seconds_count": 4.0,
        'cache_config_info{page_size="64",num_pages="64"}': 1.0,
    }
    labels = f'model_name="m",tp_rank="{tp_rank}",pp_rank="0",dp_rank="{dp_rank}"'
    return page("sglang_", values, labels)


OF_REQUESTS = {
    "prompt_tokens_total": 200.0,
    "generation_tokens_total": 150.0,
    "cached_tokens_total": 60.0,
    "num_requests_total": 9.0,
    "inter_token_latency_seconds_sum": 1.5,
    "inter_token_latency_seconds_count": 140.0,
}


def test_sglang_as_it_is_now() -> None:
    text = sglang_new(0, 0, 7.0) + sglang_new(1, 0, 7.0)  # two tensor-parallel ranks say the same
    capture = scraped(text + page("sglang_", OF_REQUESTS, 'model_name="m"'))
    assert told(capture) == {
        "running": 7,
        "waiting": 15,  # 4 + 1 + 2 + 3 + 5: those in flight to a decoder have been prefilled
        "waiting_deferred": 8,  # 1 + 2 + 5: not held back by room
        "kv_used_fraction": 0.5,
        "preemptions_total": 6,
        "input_tokens_total": 400,  # computed and cached, as they are prefilled
        "cached_tokens_total": 100,
        "output_tokens_total": 250,
        "queue_s_sum": 8,
        "queue_s_count": 4,
        "finished_total": 9,  # of the front end, which knows no rank
        "itl_s_sum": 1.5,
        "itl_s_count": 140,
    }
    assert capture.subject.block_size == 64
    assert capture.meta["metrics_page"]["kv_tokens"] == 4096


def test_sglang_s_data_parallel_ranks_and_the_front_end_before_them() -> None:
    text = sglang_new(0, 0, 7.0) + sglang_new(1, 1, 9.0)
    capture = scraped(text + page("sglang_", OF_REQUESTS, 'model_name="m"'))
    assert told(capture, "0")["running"] == 7
    assert told(capture, "1")["running"] == 9
    assert told(capture, "all") == {
        "input_tokens_total": 200,
        "output_tokens_total": 150,
        "cached_tokens_total": 60,
        "finished_total": 9,
        "itl_s_sum": 1.5,
        "itl_s_count": 140,
    }


HISTOGRAMS = {
    "time_to_first_token_seconds_sum": 5.0,
    "time_to_first_token_seconds_count": 10.0,
    "time_per_output_token_seconds_sum": 0.2,
    "time_per_output_token_seconds_count": 10.0,
    "e2e_request_latency_seconds_sum": 12.0,
    "e2e_request_latency_seconds_count": 10.0,
    "request_queue_time_seconds_sum": 1.0,
    "request_queue_time_seconds_count": 10.0,
}
IN_SECONDS = {
    "ttft_s_sum": 5,
    "ttft_s_count": 10,
    "tpot_s_sum": 0.2,
    "tpot_s_count": 10,
    "e2e_s_sum": 12,
    "e2e_s_count": 10,
    "queue_s_sum": 1,
    "queue_s_count": 10,
}


@pytest.mark.parametrize("prefix", ["trtllm_", "trtllm:"])
def test_tensorrt_llm_s_own_server(prefix: str) -> None:
    values = {
        **HISTOGRAMS,
        "num_requests_running": 12.0,
        "num_requests_waiting": 5.0,
        "num_scheduled_requests": 10.0,
        "max_num_active_requests": 64.0,
        "max_num_tokens_runtime": 8192.0,
        "kv_cache_used_blocks": 30.0,
        "kv_cache_max_blocks": 120.0,
        "kv_cache_tokens_per_block": 32.0,
        "kv_cache_hit_rate": 0.4,
        "num_requests_completed_total": 11.0,
        "prompt_tokens_total": 600.0,
        "prompt_cached_tokens_total": 200.0,
        "prompt_cached_tokens_sum": 999.0,
    }
    capture = scraped(page(prefix, values, 'model_name="m",engine_type="trtllm"'))
    assert told(capture) == {
        **IN_SECONDS,
        "running": 10,
        "waiting": 7,  # 5 queued, and 12 − 10 taken in and not scheduled
        "kv_used_fraction": 0.25,  # 30 of 120 blocks
        "prefix_hit_fraction": 0.4,
        "finished_total": 11,
        "input_tokens_total": 600,
        "cached_tokens_total": 200,
    }
    subject = capture.subject
    assert (subject.engine, subject.max_num_seqs, subject.block_size) == ("tensorrt-llm", 64, 32)
    assert subject.max_num_batched_tokens == 8192


def test_tensorrt_llm_s_own_server_before_it_told_blocks() -> None:
    values = {
        "server_queue_length": 3.0,
        "num_active_requests": 8.0,
        "kv_cache_utilization": 0.5,
        'request_success_total{finished_reason="stop"}': 4.0,
    }
    assert told(scraped(page("trtllm_", values))) == {
        "running": 8,
        "waiting": 3,
        "kv_used_fraction": 0.5,
        "finished_total": 4,
    }


def triton(**requests: float) -> str:
    values = {f'request_metrics{{request_type="{name}"}}': n for name, n in requests.items()}
    blocks = {"max": 200.0, "used": 50.0, "free": 150.0, "tokens_per": 64.0, "fraction": 0.25}
    for name, number in blocks.items():
        values[f'kv_cache_block_metrics{{kv_cache_block_type="{name}"}}'] = number
    values['general_metrics{general_type="iteration_counter"}'] = 77.0
    values['general_metrics{general_type="timestamp"}'] = 1.7e9
    return page("nv_trt_llm_", values, 'model="tensorrt_llm",version="1"')


def test_triton_s_backend() -> None:
    capture = scraped(triton(context=1, scheduled=6, max=512, active=9, waiting=4))
    assert told(capture) == {
        "running": 6,
        "waiting": 7,  # 4, and 9 − 6 active ones that were not scheduled
        "kv_used_fraction": 0.25,
        "steps_total": 77,
    }
    assert (capture.subject.max_num_seqs, capture.subject.block_size) == (512, 64)


def test_triton_s_backend_without_waiting_requests_told() -> None:
    assert told(scraped(triton(scheduled=6, max=8, active=9)))["waiting"] == 3


def test_what_is_no_longer_active_does_not_run() -> None:
    values = told(scraped(triton(scheduled=1, max=8, active=0)))
    assert (values["running"], values["waiting"]) == (0, 0)


def test_tgi() -> None:
    values = {
        "batch_current_size": 5.0,
        "queue_size": 2.0,
        "request_count": 40.0,
        "request_success": 33.0,
        "request_input_length_sum": 900.0,
        "request_input_length_count": 33.0,
        "request_generated_tokens_sum": 700.0,
        'batch_inference_count{method="prefill"}': 30.0,
        'batch_inference_count{method="decode"}': 600.0,
        "request_duration_sum": 50.0,
        "request_duration_count": 33.0,
        "request_queue_duration_sum": 3.0,
        "request_queue_duration_count": 33.0,
        "request_mean_time_per_token_duration_sum": 0.7,
        "request_mean_time_per_token_duration_count": 33.0,
    }
    capture = scraped(page("tgi_", values))
    assert told(capture) == {
        "running": 5,
        "waiting": 2,
        "arrived_total": 40,
        "finished_total": 33,
        "input_tokens_total": 900,
        "output_tokens_total": 700,
        "steps_total": 630,
        "e2e_s_sum": 50,
        "e2e_s_count": 33,
        "queue_s_sum": 3,
        "queue_s_count": 33,
        "tpot_s_sum": 0.7,
        "tpot_s_count": 33,
    }
    assert unseen(capture)["KV cache use"] == "the page has no gauge of it"


LLAMA = {
    "prompt_tokens_total": 100.0,
    "prompt_seconds_total": 4.0,
    "tokens_predicted_total": 50.0,
    "tokens_predicted_seconds_total": 10.0,
    "n_decode_total": 60.0,
    "n_tokens_max": 900.0,
    "prompt_tokens_seconds": 25.0,
    "requests_processing": 2.0,
    "requests_deferred": 1.0,
}
OF_LLAMA = {
    "input_tokens_total": 100,
    "output_tokens_total": 50,
    "steps_total": 60,
    "prefill_s_total": 4,
    "decode_s_total": 10,
    "running": 2,
    "waiting": 1,
}


def test_llama_cpp_before_the_cache_was_unified() -> None:
    values = {**LLAMA, "kv_cache_usage_ratio": 0.63, "kv_cache_tokens": 1234.0}
    assert told(scraped(page("llamacpp:", values))) == {**OF_LLAMA, "kv_used_fraction": 0.63}


def test_llama_cpp_counts_cached_tokens_apart_since_2026() -> None:
    values = {**LLAMA, "prompt_tokens_cached_total": 30.0}
    capture = scraped(page("llamacpp:", values))
    told_now = {**OF_LLAMA, "cached_tokens_total": 30, "input_tokens_total": 130}
    assert told(capture) == told_now
    assert capture.subject.engine == "llama.cpp"
