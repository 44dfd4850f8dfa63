"""Tables of scraped metrics, a row a second."""

from __future__ import annotations

from pathlib import Path

import pytest
from metrics_pages import S, over_time, read, sentences

from stallscope.errors import InputError
from stallscope.profiler.file_kinds import InputKind, input_kind
from stallscope.profiler.metrics_page.wide_csv import heading

HEADER = (
    "timestamp_sec,relative_time_sec,kv_cache_usage_pct,num_requests_running,num_requests_waiting,"
    "prefix_cache_hits,prefix_cache_queries,prompt_tokens_total,generation_tokens_total,"
    "num_preemptions_total,request_success_total,interval_throughput_tok_per_sec\n"
)
ROWS = (
    "1800000000.250,0.000,50.00,3,1,10,40,400,200,1,5,99.00\n"
    "1800000001.250,1.000,62.50,4,0,20,60,500,260,1,6,60.00\n"
)
TOLD = {
    "kv_used_fraction": [(0, 0.5), (1, 0.625)],
    "running": [(0, 3), (1, 4)],
    "waiting": [(0, 1), (1, 0)],
    "prefix_hits_total": [(0, 10), (1, 20)],
    "prefix_queries_total": [(0, 40), (1, 60)],
    "input_tokens_total": [(0, 400), (1, 500)],
    "output_tokens_total": [(0, 200), (1, 260)],
    "preemptions_total": [(0, 1), (1, 1)],
    "finished_total": [(0, 5), (1, 6)],
}


def test_every_column_that_is_one_of_vllm_s_metrics(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEADER + ROWS)
    assert input_kind(tmp_path / "a.csv") is InputKind.METRICS
    capture = read(tmp_path, HEADER + ROWS)
    assert {s.name for s in capture.engine_samples} == set(TOLD)
    assert {name: over_time(capture.engine_samples, name) for name in TOLD} == TOLD
    assert capture.meta["clock"] == {"unix_ns": 1_800_000_000_250_000_000, "t_ns": 0}
    assert capture.subject.engine == "vllm"


def test_names_with_their_prefix_and_relative_times_alone(tmp_path: Path) -> None:
    text = (
        "elapsed_s,vllm:num_requests_running,vllm:num_requests_waiting,vllm:kv_cache_usage_perc\n"
        "5.0,3,1,0.5\n7.5,4,0,0.25\n"
    )
    capture = read(tmp_path, text)
    assert over_time(capture.engine_samples, "running") == [(0, 3), (2.5, 4)]
    assert over_time(capture.engine_samples, "kv_used_fraction") == [(0, 0.5), (2.5, 0.25)]
    assert capture.meta["clock"] is None
    assert not any("no time" in sentence for sentence in sentences(capture))


def test_rows_that_do_not_fit_are_left_out_and_a_cut_one_is_said(tmp_path: Path) -> None:
    text = HEADER + "1800000000,0,1\n" + ROWS + "1800000002.250,2.000,62.50,4,0,20"
    capture = read(tmp_path, text)
    assert {s.t_ns for s in capture.engine_samples} == {0, S}
    said = " ".join(sentences(capture))
    assert "1 line has more or fewer cells than the header" in said
    assert "breaks off in the middle of a line" in said


def test_a_cell_without_a_number_is_not_zero(tmp_path: Path) -> None:
    capture = read(tmp_path, HEADER + ROWS.replace("50.00", "nan"))
    assert over_time(capture.engine_samples, "kv_used_fraction") == [(1, 0.625)]


@pytest.mark.parametrize(
    "header",
    [
        "timestamp,num_requests_running\n",  # nothing waits in it: not the load
        "num_requests_running,num_requests_waiting\n",  # no time
        "timestamp, utilization.gpu [%]\n",
        "num_requests_running\n",
    ],
)
def test_other_tables_are_no_tables_of_metrics(header: str) -> None:
    assert heading(header) is None


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no row with a time"):
        read(tmp_path, HEADER)
