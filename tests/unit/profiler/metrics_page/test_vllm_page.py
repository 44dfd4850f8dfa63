"""vLLM's pages: every version's names, with every quantity."""

from __future__ import annotations

from pathlib import Path

import pytest
from metrics_pages import S, over_time, page, read, scraped, sentences, series, told, unseen

from stallscope.errors import InputError
from stallscope.profiler.file_kinds import InputKind, input_kind
from stallscope.profiler.metrics_page.scrape import Page
from stallscope.profiler.metrics_page.to_capture import capture_of

# 0.25 and later, in our own numbers.
NOW = {
    "estimated_flops_per_gpu_total": 9e12,
    "estimated_read_bytes_per_gpu_total": 8e9,
    "estimated_write_bytes_per_gpu_total": 7e8,
    "num_requests_running": 5.0,
    "num_requests_waiting": 4.0,
    'num_requests_waiting_by_reason{reason="capacity"}': 3.0,
    'num_requests_waiting_by_reason{reason="deferred"}': 1.0,
    "kv_cache_usage_perc": 0.25,
    "prefix_cache_queries_total": 300.0,
    "prefix_cache_hits_total": 60.0,
    "num_preemptions_total": 2.0,
    "prompt_tokens_total": 1000.0,
    "prompt_tokens_cached_total": 50.0,
    "generation_tokens_total": 2000.0,
    "generation_tokens_created": 1.7e9,
    'request_success_total{finished_reason="stop"}': 11.0,
    'request_success_total{finished_reason="length"}': 9.0,
    'time_to_first_token_seconds_bucket{le="0.1"}': 20.0,
    "time_to_first_token_seconds_sum": 5.0,
    "time_to_first_token_seconds_count": 25.0,
    "inter_token_latency_seconds_sum": 19.0,
    "inter_token_latency_seconds_count": 1900.0,
    "request_time_per_output_token_seconds_sum": 0.2,
    "request_time_per_output_token_seconds_count": 20.0,
    "e2e_request_latency_seconds_sum": 30.0,
    "e2e_request_latency_seconds_count": 20.0,
    "request_queue_time_seconds_sum": 2.0,
    "request_queue_time_seconds_count": 20.0,
    "request_prefill_time_seconds_sum": 3.0,
    "request_prefill_time_seconds_count": 20.0,
    "request_decode_time_seconds_sum": 24.0,
    "request_decode_time_seconds_count": 20.0,
    'cache_config_info{block_size="16",num_gpu_blocks="100",kv_cache_size_tokens="1600",'
    'kv_cache_max_concurrency="1.5",kv_cache_memory_bytes="4096",cache_dtype="fp8",'
    'enable_prefix_caching="True",num_cpu_blocks="None"}': 1.0,
}
LABELS = 'engine="0",model_name="a/b"'
QUANTITIES = {
    "estimated_flops_total": 9e12,
    "estimated_read_bytes_total": 8e9,
    "estimated_write_bytes_total": 7e8,
    "running": 5,
    "waiting": 4,
    "waiting_deferred": 1,
    "kv_used_fraction": 0.25,
    "prefix_queries_total": 300,
    "prefix_hits_total": 60,
    "preemptions_total": 2,
    "input_tokens_total": 1000,
    "cached_tokens_total": 50,
    "output_tokens_total": 2000,
    "finished_total": 20,  # 11 + 9
    "ttft_s_sum": 5,
    "ttft_s_count": 25,
    "itl_s_sum": 19,
    "itl_s_count": 1900,
    "tpot_s_sum": 0.2,
    "tpot_s_count": 20,
    "e2e_s_sum": 30,
    "e2e_s_count": 20,
    "queue_s_sum": 2,
    "queue_s_count": 20,
    "prefill_s_sum": 3,
    "prefill_s_count": 20,
    "decode_s_sum": 24,
    "decode_s_count": 20,
}


def test_the_current_names() -> None:
    capture = scraped(page("vllm:", NOW, LABELS))
    assert told(capture) == QUANTITIES
    subject = capture.subject
    assert (subject.engine, subject.workload) == ("vllm", "serving a/b")
    assert (subject.block_size, subject.kv_budget_bytes, subject.kv_dtype) == (16, 4096, "fp8")
    assert capture.meta["metrics_page"] == {
        "block_size": 16,
        "kv_blocks": 100,
        "kv_tokens": 1600,
        "max_concurrency": 1.5,
        "kv_bytes": 4096,
        "kv_dtype": "fp8",
        "prefix_caching": "True",
        "model": "a/b",
    }
    assert capture.meta["clock"] == {"unix_ns": 1_800_000_000 * S, "t_ns": 7 * S}
    assert {s.t_ns for s in capture.engine_samples} == {7 * S}


@pytest.mark.parametrize("prefix", ["ray_vllm_", "vllm_", "kserve_vllm:"])
def test_the_prefixes_that_others_write(prefix: str) -> None:
    assert told(scraped(page(prefix, NOW, LABELS))) == QUANTITIES


def test_v1_before_its_metrics_were_renamed() -> None:
    values = {
        "num_requests_running": 5.0,
        "num_requests_waiting": 4.0,
        "gpu_cache_usage_perc": 0.5,
        "gpu_prefix_cache_queries_total": 30.0,
        "gpu_prefix_cache_hits_total": 6.0,
        "time_per_output_token_seconds_sum": 2.0,
        "time_per_output_token_seconds_count": 100.0,
    }
    assert told(scraped(page("vllm:", values, LABELS))) == {
        "running": 5,
        "waiting": 4,
        "kv_used_fraction": 0.5,
        "prefix_queries_total": 30,
        "prefix_hits_total": 6,
        "itl_s_sum": 2,
        "itl_s_count": 100,
    }


def test_the_newer_gauge_counts_where_both_stand() -> None:
    values = {"num_requests_running": 1.0, "gpu_cache_usage_perc": 0.0, "kv_cache_usage_perc": 0.5}
    assert told(scraped(page("vllm:", values, LABELS)))["kv_used_fraction"] == 0.5


def test_version_0_counts_swapped_requests_as_waiting() -> None:
    values = {
        "num_requests_running": 5.0,
        "num_requests_waiting": 4.0,
        "num_requests_swapped": 2.0,
        "gpu_cache_usage_perc": 0.9,
        "cpu_cache_usage_perc": 0.1,
        "time_in_queue_requests_sum": 3.0,
        "time_in_queue_requests_count": 6.0,
        "avg_prompt_throughput_toks_per_s": 12.0,
    }
    assert told(scraped(page("vllm:", values, 'model_name="a/b"'))) == {
        "running": 5,
        "waiting": 6,
        "swapped": 2,
        "kv_used_fraction": 0.9,
        "queue_s_sum": 3,
        "queue_s_count": 6,
    }


def test_data_parallel_engines_stay_apart() -> None:
    text = page("vllm:", NOW, 'engine="0",model_name="a/b"')
    text += page("vllm:", {**NOW, "num_requests_running": 9.0}, 'engine="1",model_name="a/b"')
    capture = scraped(text)
    assert told(capture, "0") == QUANTITIES
    assert told(capture, "1") == {**QUANTITIES, "running": 9}
    assert capture.meta["metrics_page"]["kv_tokens"] == 1600


def test_replicas_of_a_federated_page_are_named_by_what_differs() -> None:
    text = page("vllm:", NOW, 'engine="0",instance="a:8000",model_name="m"')
    text += page("vllm:", NOW, 'engine="0",instance="b:8000",model_name="m"')
    capture = scraped(text)
    assert {s.engine for s in capture.engine_samples} == {"a:8000", "b:8000"}


def test_what_a_page_lacks_is_not_observable_and_never_zero() -> None:
    values = {"num_requests_running": 5.0, "num_requests_waiting": 4.0}
    capture = scraped(page("vllm:", values, LABELS))
    assert told(capture) == {"running": 5, "waiting": 4}
    assert unseen(capture) == {
        "KV cache use": "the page has no gauge of it",
        "the cap on running requests": "the page does not state it",
        "rates of tokens and requests": "there is one page",
    }


def test_a_cache_gauge_that_stays_zero_while_requests_run_is_not_believed() -> None:
    busy = page("vllm:", {**NOW, "kv_cache_usage_perc": 0.0}, LABELS)
    capture = scraped(busy, busy)
    assert "kv_used_fraction" not in told(capture)
    assert unseen(capture)["KV cache use"] == "it reads zero while requests run"
    still = page("vllm:", {**NOW, "kv_cache_usage_perc": 0.0, "num_requests_running": 0.0}, LABELS)
    assert told(scraped(still))["kv_used_fraction"] == 0  # nothing runs: zero is right
    assert told(scraped(busy, page("vllm:", NOW, LABELS)))["kv_used_fraction"] == 0.25


def test_a_series_of_pages(tmp_path: Path) -> None:
    later = {**NOW, "num_requests_running": 6.0, "generation_tokens_total": 2100.0}
    text = series(page("vllm:", NOW, LABELS), page("vllm:", later, LABELS), every_ms=2500)
    (tmp_path / "file").write_text(text)
    assert input_kind(tmp_path / "file") is InputKind.METRICS
    capture = read(tmp_path, text)
    assert over_time(capture.engine_samples, "running") == [(0, 5), (2.5, 6)]
    assert over_time(capture.engine_samples, "output_tokens_total") == [(0, 2000), (2.5, 2100)]
    assert capture.meta["clock"] == {"unix_ns": 1_800_000_000 * S, "t_ns": 0}
    assert sentences(capture) == []


@pytest.mark.parametrize("how", ["crlf", "utf-16", "bom"])
def test_a_page_however_it_was_saved(how: str, tmp_path: Path) -> None:
    text = series(page("vllm:", NOW, LABELS))
    saved = {
        "crlf": text.replace("\n", "\r\n").encode(),
        "utf-16": text.encode("utf-16"),
        "bom": b"\xef\xbb\xbf" + text.encode(),
    }
    assert told(read(tmp_path, saved[how])) == QUANTITIES


def test_a_page_cut_in_the_middle_of_a_line_says_so(tmp_path: Path) -> None:
    text = page("vllm:", {"num_requests_running": 5.0, "num_requests_waiting": 4321.0}, LABELS)
    for capture in (read(tmp_path, text[:-4]), scraped(text[:-4])):  # "432" is left of the number
        assert told(capture) == {"running": 5}
        assert "breaks off in the middle of a line" in " ".join(sentences(capture))
        assert "requests that wait and run" in unseen(capture)


def test_a_restart_adds_on(tmp_path: Path) -> None:
    counts = (100.0, 150.0, 30.0, 60.0)
    pages = [page("vllm:", {**NOW, "generation_tokens_total": n}, LABELS) for n in counts]
    capture = read(tmp_path, series(*pages))
    # 150 before the restart, and 30, then 60, after it
    made = [n for _, n in over_time(capture.engine_samples, "output_tokens_total")]
    assert made == [100, 150, 180, 210]
    (event,) = [e for e in capture.events if e.kind == "restart"]
    assert (event.t_ns, event.data) == (2 * S, {"engine": "0"})
    assert sentences(capture) == [
        "The server's counters were set back once, as a restart does; what was counted before was "
        "added on."
    ]


def test_a_restart_is_seen_by_the_start_time_even_if_counters_went_past(tmp_path: Path) -> None:
    pages = [
        page("", {"process_start_time_seconds": start})
        + page("vllm:", {"generation_tokens_total": made}, LABELS)
        for start, made in ((1.8e9, 10.0), (1.8e9 + 5, 40.0))
    ]
    samples = read(tmp_path, series(*pages)).engine_samples
    assert over_time(samples, "output_tokens_total") == [(0, 10), (1, 50)]


def test_a_clock_that_jumps_back_goes_on_by_a_usual_interval(tmp_path: Path) -> None:
    one = page("vllm:", NOW, LABELS)
    text = "".join(
        f"# scrape_unix_ms {1_800_000_000_000 + ms}\n{one}" for ms in (0, 2000, 500, 2500)
    )
    capture = read(tmp_path, text)
    # 2 s, then back: the usual interval of 2 s again, then 2 s
    assert [t for t, _ in over_time(capture.engine_samples, "running")] == [0, 2, 4, 6]
    assert any("jumps back" in sentence for sentence in sentences(capture))


def test_pages_glued_together_without_a_time(tmp_path: Path) -> None:
    text = page("vllm:", NOW, LABELS) + page("vllm:", {**NOW, "num_requests_running": 6.0}, LABELS)
    capture = read(tmp_path, text)
    assert [n for _, n in over_time(capture.engine_samples, "running")] == [5, 6]
    assert any("have no time" in sentence for sentence in sentences(capture))
    assert capture.meta["clock"] is None


def test_times_far_apart_end_after_two_centuries(tmp_path: Path) -> None:
    one = page("vllm:", NOW, LABELS)
    far = (100_000_000_000, 4_000_000_000_000) * 2
    capture = read(tmp_path, "".join(f"# scrape_unix_ms {ms}\n{one}" for ms in far))
    assert max(s.t_ns for s in capture.engine_samples) == 200 * 365 * 86_400 * 10**9


def test_the_cap_shows_where_running_never_passes_a_default() -> None:
    queue = {**NOW, "num_requests_running": 128.0, "num_requests_waiting": 40.0}
    capture = scraped(page("vllm:", queue, LABELS), page("vllm:", queue, LABELS))
    assert capture.subject.max_num_seqs == 128
    assert sentences(capture) == [
        "The page does not state max_num_seqs; running stood at 128, a default of vLLM's, while "
        "requests waited, and was never higher."
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "the page is empty"),
        ("<!DOCTYPE html><html>no</html>", "it is an HTML page"),
        ("node_cpu_seconds_total 5\ngo_threads 7\n", "it holds metrics of node_exporter, and none"),
        ("go_threads 7\n", "it holds metrics of a Go program, and none of an engine"),
        ("my_app_requests 7\n", "it holds metrics of my_…, and none of an engine"),
        ("hello world\n", "it holds no metrics"),
        ('[{"numActiveRequests": 1}]', "it is JSON .* has its page at /prometheus/metrics"),
    ],
)
def test_a_page_of_something_else_is_refused(text: str, found: str) -> None:
    with pytest.raises(InputError, match=found) as refused:
        capture_of([Page(0, None, text)], "http://h/metrics")
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith("http://h/metrics: ")


def test_the_cpu_time_of_the_frontend_is_the_first_engine_s(tmp_path: Path) -> None:
    gauges = {"num_requests_running": 1.0, "num_requests_waiting": 0.0}
    engines = "".join(page("vllm:", gauges, f'engine="{i}"') for i in range(2))
    pages = (f"{engines}process_cpu_seconds_total {60.0 + i}\n" for i in (0, 0.9))
    samples = read(tmp_path, series(*pages)).engine_samples
    name = "frontend_cpu_s_total"
    assert over_time(samples, name) == [(0.0, 60.0), (1.0, pytest.approx(60.9))]
    assert over_time(samples, name, "1") == []


def test_of_another_server_the_process_is_the_engine_itself(tmp_path: Path) -> None:
    gauges = {"num_running_reqs": 1.0, "num_queue_reqs": 0.0}
    text = page("sglang:", gauges) + "process_cpu_seconds_total 60.0\n"
    names = {s.name for s in read(tmp_path, text).engine_samples}
    assert "frontend_cpu_s_total" not in names
    assert "running" in names
