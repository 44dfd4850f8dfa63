"""Results of benchmarks through the command line: one, several, by stdin, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stallscope.app import application

ROW = {
    **{"backend": "openai", "model_id": "some/model", "num_prompts": 100, "request_rate": "inf"},
    **{"completed": 100, "total_input_tokens": 10_000, "total_output_tokens": 10_000},
    **{"mean_tpot_ms": 10.0, "median_tpot_ms": 10.0, "median_ttft_ms": 100.0},
}


def result(clients: int, tokens_per_s: float, ttft_ms: float = 100.0) -> dict[str, Any]:
    """100 requests of 100 + 100 tokens."""
    whole = ttft_ms + 990.0
    return {
        **ROW,
        "max_concurrency": clients,
        "output_throughput": tokens_per_s,
        "request_throughput": tokens_per_s / 100,
        "duration": 10_000 / tokens_per_s,
        "mean_ttft_ms": ttft_ms,
        "mean_e2el_ms": whole,
    }


def diagnosed(*arguments: str) -> dict[str, Any]:
    ended = CliRunner().invoke(application(), ["diagnose", *arguments, "--format", "json"])
    assert ended.exit_code == 0, ended.output
    report = json.loads(ended.stdout)
    assert isinstance(report, dict)
    return report


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Loads of 1, 4 and 16 clients: 91, 360 and 400 tokens/s."""
    paths = []
    for clients, tokens, ttft in ((16, 400.0, 3000.0), (1, 91.0, 100.0), (4, 360.0, 110.0)):
        path = tmp_path / f"c{clients}.json"
        path.write_text(json.dumps(result(clients, tokens, ttft)))
        paths.append(str(path))
    return paths


def test_a_sweep_of_files(files: list[str]) -> None:
    report = diagnosed(*files)
    sweep = report["sweep"]
    assert (sweep["axis"], sweep["knee"]) == ("concurrency", 4)
    assert [row["load"] for row in sweep["rows"]] == [1, 4, 16]
    # 296 % more tokens for 300 % more load, then 11 % for 300 %.
    assert sweep["rows"][1]["marginal"] == pytest.approx((360 / 91 - 1) / 3)
    assert sweep["rows"][2]["marginal"] == pytest.approx((400 / 360 - 1) / 3)
    assert {row["class"] for row in sweep["rows"]} == {"undetermined"}
    assert [s["path"] for s in report["capture"]["sources"]] == files
    assert report["latency"]["ttft_s"] == {
        **{"mean": 3.0, "p50": 0.1, "p90": None, "p99": None, "n": 100}
    }


def test_text_and_markdown_hold_the_table(files: list[str], tmp_path: Path) -> None:
    said = CliRunner().invoke(application(), ["diagnose", *files]).stdout
    assert "Sweep\n  The knee is at concurrency 4 with 360 output tokens/s" in said
    assert "4 (knee)" in said
    page = tmp_path / "report.md"
    ended = CliRunner().invoke(application(), ["diagnose", *files, "-o", str(page)])
    assert ended.exit_code == 0
    assert "## Sweep" in page.read_text()
    assert "| 4 (knee) | 100 + 100 |" in page.read_text()


def test_one_file_has_no_sweep(files: list[str]) -> None:
    assert diagnosed(files[0])["sweep"] is None


def test_stdin(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "stallscope", "diagnose", "-", "--format", "json"],
        input=json.dumps(result(16, 400.0)),
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(ended.stdout)
    assert report["capture"]["sources"][0]["path"] == "-"
    # 4 a second of 1.09 s each are 4.4 in flight, of 14.3 that 100 requests from 16 keep up.
    assert report["verdict"]["class"] == "client"
    assert "4.4 of 14 clients had a request in flight" in report["verdict"]["sentence"]


def test_the_files_concurrency_goes_before_an_option(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(result(16, 400.0)))
    report = diagnosed(str(path), "--concurrency", "5")
    assert report["verdict"]["class"] == "client"
    assert report["warnings"] == [
        "--concurrency was not used: 5 was given, and the capture itself says 16."
    ]


def test_what_is_cut_or_no_result_is_one_line(tmp_path: Path) -> None:
    for text in (json.dumps(result(1, 9.0))[:200], '{"request_throughput": {"avg": 1}}'):
        path = tmp_path / "results.json"
        path.write_text(text)
        ended = subprocess.run(
            [sys.executable, "-m", "stallscope", "diagnose", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, ended.stdout) == (1, "")
        assert ended.stderr.startswith(f"stallscope: {path}: ")
        assert ended.stderr.count("\n") == 1
