"""Each tool's results: every figure that is taken, and the unit it was written in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from benchmark_rows import (
    AGENTIC,
    AIPERF,
    FAILED,
    GENAI_CSV,
    GUIDELLM,
    INFMAX,
    LIFECYCLE,
    OF_SERVER,
    SGLANG,
    TRTLLM,
    VLLM,
    capture_of,
    trials_in,
)

from stallscope.profiler.trial import Spread, Trial


def only(folder: Path, content: object) -> Trial:
    (trial,) = trials_in(capture_of(folder, content))
    return replace(trial, source="")


def approximately(trial: Trial) -> Trial:
    """Round what is scaled from milliseconds, so that trials compare as a whole."""
    latency = {
        m: Spread(
            *(None if v is None else round(v, 9) for v in (s.mean, s.p50, s.p90, s.p99)),
            n=s.n,
            least=None if s.least is None else round(s.least, 9),
            most=None if s.most is None else round(s.most, 9),
        )
        for m, s in trial.latency.items()
    }
    return replace(trial, latency=latency)


VLLM_TRIAL = Trial(
    source="",
    concurrency=8,
    completed=40,
    failed=2,
    duration_s=10.0,
    input_tokens=100.0,  # 4000 / 40
    output_tokens=20.0,  # 800 / 40
    input_tokens_per_s=400.0,  # 4000 / 10 s
    output_tokens_per_s=80.0,
    requests_per_s=4.0,
    latency={
        "ttft_s": Spread(0.1, 0.09, 0.15, 0.2, 40),
        "tpot_s": Spread(0.05, 0.049, None, 0.06),
        "itl_s": Spread(0.051, 0.048, None, 0.07),
        "e2e_s": Spread(1.05, 1.04, None, 1.2, 40),
    },
)


def test_vllm(tmp_path: Path) -> None:
    assert approximately(only(tmp_path, VLLM)) == VLLM_TRIAL
    capture = capture_of(tmp_path, VLLM)
    assert capture.subject.concurrency == 8
    assert capture.subject.workload == (
        "40 requests to some/model of 100 + 20 tokens from 8 clients"
    )
    # 12:00:10 as the result was written, 10 s after the beginning; the zone is not told.
    assert capture.meta["clock"] == {
        "unix_ns": 1_772_366_400 * 10**9,
        "t_ns": 0,
        "zone": "unknown",
        "error_ns": 5 * 10**9,
    }
    assert [s.path for s in capture.sources] == [str(tmp_path / "results.json")]


def test_vllm_in_seconds_with_a_rate_and_no_count_of_failures(tmp_path: Path) -> None:
    row = {k: v for k, v in VLLM.items() if not k.endswith("_ms") and k != "failed"}
    row |= {"request_rate": 5.0, "median_ttft": 4.5, "p99_ttft": 7.5, "median_e2el": 6.75}
    row["benchmark_start_time_unix"] = 1_700_000_000.5
    trial = only(tmp_path, row)
    assert trial.latency == {
        "ttft_s": Spread(p50=4.5, p99=7.5, n=40),
        "e2e_s": Spread(p50=6.75, n=40),
    }
    assert trial.failed == 2  # 42 prompts, 40 came back
    # At a rate the 8 clients only bound what is in flight.
    assert (trial.rate_per_s, trial.concurrency, trial.cap) == (5.0, None, 8)
    assert trial.started_unix_ns == 1_700_000_000_500_000_000


def test_a_run_of_which_nothing_came_back_has_no_latency(tmp_path: Path) -> None:
    trial = only(tmp_path, FAILED)
    assert (trial.completed, trial.failed, trial.latency) == (0, 42, {})
    assert (trial.output_tokens, trial.output_tokens_per_s) == (None, None)


def test_a_sweep_is_a_list_of_rows_and_the_fastest_is_judged(tmp_path: Path) -> None:
    faster = {**VLLM, "max_concurrency": 16, "output_throughput": 120.0, "max_num_seqs": 4}
    capture = capture_of(tmp_path, [{**VLLM, "max_num_seqs": 4}, faster])
    assert [t.concurrency for t in trials_in(capture)] == [8, 16]
    assert capture.meta["benchmark"]["judged"] == 1
    assert (capture.subject.concurrency, capture.subject.max_num_seqs) == (16, 4)
    path = tmp_path / "results.json"
    assert [t.source for t in trials_in(capture)] == [f"{path}, row 1", f"{path}, row 2"]


def test_sglang_lines(tmp_path: Path) -> None:
    lines = [SGLANG, {**SGLANG, "request_rate": float("inf"), "max_concurrency": 32}]
    first, second = trials_in(capture_of(tmp_path, "".join(json.dumps(x) + "\n" for x in lines)))
    assert approximately(replace(first, source="")) == Trial(
        source="",
        rate_per_s=4.0,
        completed=10,
        duration_s=20.0,
        input_tokens=100.0,
        output_tokens=50.0,
        input_tokens_per_s=50.0,
        output_tokens_per_s=25.0,
        requests_per_s=0.5,  # 10 in 20 s
        in_flight=1.25,
        tokens_per_step=2.5,
        latency={
            "ttft_s": Spread(p50=0.3, n=10),
            "itl_s": Spread(p50=0.02),
            "e2e_s": Spread(2.0, 1.9, n=10),
        },
    )
    assert (second.rate_per_s, second.concurrency) == (None, 32)


def test_trtllm_report(tmp_path: Path) -> None:
    assert approximately(only(tmp_path, TRTLLM)) == Trial(
        source="",
        completed=30,
        duration_s=6.0,
        input_tokens=128.0,
        output_tokens=64.0,
        input_tokens_per_s=640.0,  # 960 in all − 320 of output
        output_tokens_per_s=320.0,
        requests_per_s=5.0,
        in_flight=12.5,
        tokens_per_step=1.5,
        speculative=True,
        latency={
            "ttft_s": Spread(0.2, 0.19, 0.29, 0.31, 30),
            "tpot_s": Spread(0.036, 0.035, 0.04, 0.044),
            "e2e_s": Spread(2.5, 2.4, 2.9, 3.1, 30, 1.0, 3.2),
        },
    )
    subject = capture_of(tmp_path, TRTLLM).subject
    assert subject.device is not None
    assert (subject.device.name, subject.num_devices) == ("h200-sxm", 2)
    assert (subject.dtype, subject.kv_dtype, subject.engine) == ("bf16", "fp8", "tensorrt-llm")
    assert (subject.max_num_seqs, subject.max_num_batched_tokens) == (64, 8192)
    lone = {**TRTLLM, "streaming_metrics": {"avg_ttft_ms": 200.0}}
    assert only(tmp_path, lone).latency["ttft_s"] == Spread(mean=0.2)


AIPERF_TRIAL = Trial(
    source="",
    concurrency=16,
    completed=50,
    failed=3,
    duration_s=10.0,
    input_tokens=550.0,
    output_tokens=100.0,
    output_tokens_per_s=500.0,
    requests_per_s=5.0,
    started_unix_ns=1_700_000_000_000_000_000,
    latency={
        "ttft_s": Spread(0.3, 0.25, 0.6, 0.8, 50, 0.1, 0.9),
        "tpot_s": Spread(0.017, 0.016),  # written in µs
        "itl_s": Spread(0.018, 0.0175, None, 0.03, 990),
        "e2e_s": Spread(2.0, 1.9, 2.4, 2.45, 50, 1.5, 2.5),
    },
)


def test_aiperf(tmp_path: Path) -> None:
    assert approximately(only(tmp_path, AIPERF)) == AIPERF_TRIAL
    assert capture_of(tmp_path, AIPERF).meta["benchmark"]["model"] == "some/model"
    older = {
        "records": {
            **{k: v for k, v in AIPERF.items() if k not in ("input_config", "time_to_first_token")},
            "ttft": AIPERF["time_to_first_token"],
        },
        "input_config": AIPERF["input_config"],
    }
    assert approximately(only(tmp_path, older)) == AIPERF_TRIAL


def test_genai_perf_table(tmp_path: Path) -> None:
    assert approximately(only(tmp_path, GENAI_CSV)) == Trial(
        source="",
        completed=60,
        duration_s=30.0,  # 60 requests at 2 a second
        input_tokens=550.0,
        output_tokens=136.0,
        output_tokens_per_s=272.0,
        requests_per_s=2.0,
        latency={
            "ttft_s": Spread(1.3, 1.2, 2.0, 2.4, 60, 0.1, 2.5),
            "tpot_s": Spread(0.02, 0.0195, 0.022, 0.024, None, 0.018, 0.025),
            "e2e_s": Spread(4.0, 3.9, 4.7, 4.9, 60, 3.0, 5.0),
        },
    )


def test_a_time_without_a_unit_says_nothing(tmp_path: Path) -> None:
    row = {**AIPERF, "time_to_first_token": {"avg": 300.0, "unit": "fortnights"}}
    assert "ttft_s" not in only(tmp_path, row).latency


def test_guidellm(tmp_path: Path) -> None:
    assert approximately(only(tmp_path, GUIDELLM)) == Trial(
        source="",
        concurrency=4,
        completed=90,
        failed=1,
        duration_s=50.0,  # of all 100 requests made, not of the window
        input_tokens=100.0,
        output_tokens=50.0,
        input_tokens_per_s=200.0,  # 100 in 50 s, 100 tokens each
        output_tokens_per_s=100.0,
        requests_per_s=2.0,
        in_flight=3.8,  # 100 · 1.9 s ÷ 50 s
        started_unix_ns=1_700_000_005_000_000_000,
        latency={
            "ttft_s": Spread(0.08, 0.075, 0.12, 0.2, 90, 0.04, 0.25),
            "tpot_s": Spread(0.037, 0.035, 0.043, 0.049, None, 0.029, 0.051),
            "e2e_s": Spread(1.9, 1.8, 2.2, 2.5, 90, 1.5, 2.6),
        },
    )


@pytest.mark.parametrize(
    ("strategy", "concurrency", "rate"),
    [
        ({"type_": "synchronous", "max_concurrency": 1}, 1, None),
        ({"type_": "constant", "rate": 3.0, "max_concurrency": 512}, None, 3.0),
        ({"type_": "throughput", "max_concurrency": 256}, 256, None),
    ],
)
def test_guidellm_strategies(
    tmp_path: Path, strategy: dict[str, object], concurrency: int | None, rate: float | None
) -> None:
    (benchmark,) = GUIDELLM["benchmarks"]
    row = {**GUIDELLM, "benchmarks": [{**benchmark, "config": {"strategy": strategy}}] * 2}
    trials = trials_in(capture_of(tmp_path, row))
    assert [(t.concurrency, t.rate_per_s) for t in trials] == [(concurrency, rate)] * 2
    assert trials[1].source.endswith(", benchmark 2")


def test_inference_perf_by_its_own_clock(tmp_path: Path) -> None:
    assert only(tmp_path, LIFECYCLE) == Trial(
        source="",
        rate_per_s=50.0,
        completed=490,
        failed=10,
        duration_s=14.0,  # 490 at 35 a second
        input_tokens=200.0,
        output_tokens=60.0,
        input_tokens_per_s=7000.0,
        output_tokens_per_s=2100.0,
        requests_per_s=35.0,
        sent_per_s=40.0,
        send_delay_s=2.5,
        latency={
            "ttft_s": Spread(0.1, 0.08, n=490, least=0.05, most=0.4),
            "tpot_s": Spread(0.01, 0.009),
            "itl_s": Spread(0.01, 0.0001, None, 0.03),
            "e2e_s": Spread(1.0, 0.9, 1.5, 2.0, 490, 0.5, 2.2),
        },
    )


def test_inference_perf_from_the_servers_metrics(tmp_path: Path) -> None:
    assert only(tmp_path, OF_SERVER) == Trial(
        source="",
        completed=1000,
        duration_s=20.0,
        input_tokens_per_s=10_000.0,  # its mean lengths are none: only rates are taken
        output_tokens_per_s=3000.0,
        requests_per_s=50.0,
        waiting=30.0,
        latency={
            "ttft_s": Spread(1.0, 0.9),
            "tpot_s": Spread(0.02),
            "e2e_s": Spread(2.0, 1.8, 3.0, 4.0),
        },
    )


def test_inferencex_of_fixed_lengths(tmp_path: Path) -> None:
    assert only(tmp_path, INFMAX) == Trial(
        source="",
        concurrency=16,
        input_tokens=1024.0,
        output_tokens=512.0,
        input_tokens_per_s=256.0,  # 64 on each of 4 GPUs
        output_tokens_per_s=128.0,
        requests_per_s=0.25,  # 128 ÷ 512
        speculative=True,
        latency={
            "ttft_s": Spread(0.3, 0.25, 0.5, 0.6),
            "tpot_s": Spread(0.012, 0.011),
            "itl_s": Spread(0.03),
            "e2e_s": Spread(6.0, 5.9),
        },
    )
    subject = capture_of(tmp_path, INFMAX).subject
    assert subject.device is not None
    assert (subject.device.name, subject.num_devices) == ("b200", 4)
    assert (subject.dtype, subject.engine) == ("fp8", "vllm")


def test_inferencex_with_prefill_and_decode_apart_has_several_engines(tmp_path: Path) -> None:
    row = {**INFMAX, "disagg": True, "num_prefill_gpu": 2, "num_decode_gpu": 6}
    trial = only(tmp_path, row)
    assert (trial.engines, trial.output_tokens_per_s) == (2, 256.0)  # 32 on each of 8


def test_inferencex_agents(tmp_path: Path) -> None:
    assert only(tmp_path, AGENTIC) == Trial(
        source="",
        concurrency=8,
        completed=50,
        failed=2,
        duration_s=100.0,  # 50 at 0.5 a second
        input_tokens=9000.0,
        output_tokens=500.0,
        input_tokens_per_s=4500.0,
        output_tokens_per_s=250.0,  # 0.5 · 500
        requests_per_s=0.5,
        latency={
            "ttft_s": Spread(2.0, n=50),
            "itl_s": Spread(0.02),
            "e2e_s": Spread(12.0, 11.0, n=50),
        },
    )
    subject = capture_of(tmp_path, AGENTIC).subject
    assert (subject.device, subject.num_devices, subject.dtype) == (None, 8, None)
