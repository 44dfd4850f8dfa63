"""Values of which no number is made are said, and named as the reason for what is not known."""

from __future__ import annotations

from pathlib import Path

import pytest
from metrics_pages import page, read, scraped, sentences, told, unseen

from stallscope.profiler.metrics_page.exposition import no_figure, sample_of

LABELS = 'engine="0",model_name="m"'
METRIC = "vllm:num_requests_running"
WHAT = "requests that wait and run"


def vllm(running: str, used: str = "0.97") -> str:
    rest = page("vllm:", {"num_requests_waiting": 64.0}, LABELS)
    own = f"{METRIC}{{{LABELS}}} {running}\nvllm:kv_cache_usage_perc{{{LABELS}}} {used}\n"
    return own + rest


@pytest.mark.parametrize(
    "value", ["NaN", "nan", "+Inf", "-Inf", "1e300", "1e999", "forty", "1.2.3"]
)
def test_a_gauge_that_reads_no_figure_is_named_and_costs_no_other(
    value: str, tmp_path: Path
) -> None:
    capture = read(tmp_path, vllm(value))
    assert told(capture) == {"waiting": 64.0, "kv_used_fraction": 0.97}
    assert f"{METRIC} reads {value}: no figure, and left out." in sentences(capture)
    assert unseen(capture)[WHAT] == f"{METRIC} reads {value}, which is no figure"


def test_pages_are_counted() -> None:
    capture = scraped(vllm("NaN"), vllm("3"), vllm("NaN"))
    assert f"{METRIC} reads NaN on 2 of 3 pages: no figure, and left out." in sentences(capture)
    assert WHAT not in unseen(capture)


def test_of_the_pool_too(tmp_path: Path) -> None:
    capture = read(tmp_path, vllm("3", used="1e300"))
    reason = "vllm:kv_cache_usage_perc reads 1e300, which is no figure"
    assert unseen(capture)["KV cache use"] == reason


def test_figures_and_metrics_that_are_not_read_are_not_spoken_of(tmp_path: Path) -> None:
    unused = f"vllm:something_else{{{LABELS}}} NaN\n"
    capture = read(tmp_path, unused + vllm("3"))
    assert not any("no figure" in said for said in sentences(capture))


@pytest.mark.parametrize(
    ("gauge", "missing"), [("num_requests_running", "wait"), ("num_requests_waiting", "run")]
)
def test_one_absent_gauge_is_not_said_of_both(gauge: str, missing: str, tmp_path: Path) -> None:
    capture = read(tmp_path, page("vllm:", {gauge: 4.0}, LABELS))
    assert unseen(capture)[WHAT] == f"the page has no gauge of those that {missing}"


def test_lines_of_yaml_are_no_metrics() -> None:
    assert sample_of("mem_bw: 300000000000") is None
    assert sample_of("vllm:num_requests_running 3") is not None
    assert no_figure("# HELP vllm:num_requests_running NaN") is None
    assert no_figure("vllm:num_requests_running 3") is None
