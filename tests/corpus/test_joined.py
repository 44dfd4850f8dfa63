"""Real sources of one run, joined: each kept its own clock, and all were of one machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stallscope.app import call

RUN = "infx_llama70bfp4_tp1_bs16_offloadoff"
FULL = "infx_dsr1fp4_b200_tp4_bs64_offloadoff"


def report(capsys: pytest.CaptureFixture[str], *files: Path) -> dict[str, Any]:
    assert call(["diagnose", *map(str, files), "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def notes(found: dict[str, Any]) -> str:
    return " ".join(map(str, found["notes"]))


def test_a_log_scraped_metrics_and_transfers_of_a_gpu(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    series = corpus / "prom_ts"
    found = report(
        capsys,
        corpus / f"logs/vllm__{RUN}.server.log",
        series / f"{RUN}_gpu_transfer.csv",
        series / f"{RUN}_server_metrics.csv",
    )
    # The log, in local time without a year, and the metrics, in Unix time, see the work begin
    # together: the machine ran on UTC.
    assert ".server.log is joined with " in notes(found)
    assert "1 of 1 begin or end of work agrees (residual 0.0 s" in notes(found)
    assert "time zone" not in notes(found)


def test_a_full_pool_seen_by_log_and_metrics_together(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = report(
        capsys,
        corpus / f"logs/vllm__{FULL}.server.log",
        corpus / f"prom_ts/{FULL}_server_metrics.csv",
    )
    assert found["verdict"]["class"] == "capacity"
    # One server: its 64 clients are not counted twice.
    measures = {m["name"]: m["value"] for m in found["measures"]}
    assert 55 < measures["in_flight"] <= 64


def test_a_log_beside_a_benchmark_leaves_the_clients_exact_figures(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """40 requests of 128 and 512 tokens in 16.863 s; the log's gauge says 0.2 % of its pool."""
    assert (
        call(
            [
                *("diagnose", str(corpus / "logs/vllm__h200bench_bench3_v1.log")),
                str(corpus / "bench/h200bench__1_vllm_c8.json"),
                *("--model", "llama-3-8b", "--gpu", "h200-sxm", "--dtype", "bf16"),
                *("--format", "json"),
            ]
        )
        == 0
    )
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    rates = found["throughput"]
    assert rates["input_tokens_per_s"] == pytest.approx(40 * 128 / 16.8635, rel=1e-3)
    assert rates["output_tokens_per_s"] == pytest.approx(40 * 512 / 16.8635, rel=1e-3)
    assert rates["requests_per_s"] == pytest.approx(40 / 16.8635, rel=1e-3)
    # 40 / 16.86 s · (3.366 − 0.076) s = 7.81 in decode, each with 128 + 256 tokens: 2,997.
    assert "finds 2,997 tokens in the KV cache" in notes(found)
    assert "client counted 303.6 input tokens/s" in notes(found)
