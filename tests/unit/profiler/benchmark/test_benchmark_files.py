"""Which files are results of benchmarks, and what is refused in one line."""

from __future__ import annotations

import json
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
    written,
)

from stallscope.errors import InputError
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.capture_writer import write_capture
from stallscope.profiler.file_kinds import InputKind, input_kind
from stallscope.profiler.reading import read_input, read_inputs

RESULTS = {
    "vllm": (VLLM, "bench serve"),
    "vllm failed": (FAILED, "bench serve"),
    "sweep": ([VLLM, VLLM], "bench serve"),
    "sglang": (json.dumps(SGLANG) + "\n" + json.dumps(SGLANG), "bench serve"),
    "trtllm": (TRTLLM, "trtllm-bench"),
    "aiperf": (AIPERF, "genai-perf or AIPerf"),
    "genai-perf table": (GENAI_CSV, "genai-perf or AIPerf"),
    "guidellm": (GUIDELLM, "guidellm"),
    "lifecycle": (LIFECYCLE, "inference-perf"),
    "of the server": (OF_SERVER, "inference-perf"),
    "inferencex": (INFMAX, "InferenceX"),
    "agents": (AGENTIC, "InferenceX"),
}


@pytest.mark.parametrize(("content", "tool"), RESULTS.values(), ids=RESULTS)
def test_the_tool_is_told_from_the_keys(tmp_path: Path, content: object, tool: str) -> None:
    assert input_kind(written(tmp_path, content)) is InputKind.BENCHMARK
    capture = capture_of(tmp_path, content)
    assert capture.meta["benchmark"]["tool"] == tool
    assert [s.kind for s in capture.sources] == [f"results of {tool}"]


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        '{"traceEvents": [], "request_throughput": {"avg": 1}}',
        '{"laeufe": [{"concurrency": 1, "ttft_s_median": 0.3}]}',
        "Metric,Value\nRequest Count,3\n",
        'log line: "mean_ttft_ms": 3',
    ],
)
def test_other_files_are_none(tmp_path: Path, content: str) -> None:
    assert input_kind(written(tmp_path, content)) is not InputKind.BENCHMARK


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"mean_ttft_ms": 3}', "holds no result of a benchmark tool known here; give the JSON"),
        ('{"mean_ttft_ms": 3', "not valid JSON"),
        ('{"total_input_tokens": 3, "x": ' + "[" * 100_000, "not valid JSON: nested too deeply"),
        ('[{"mean_ttft_ms": 3}, 4]', "holds no result of a benchmark tool known here"),
    ],
)
def test_what_holds_no_result_is_refused(tmp_path: Path, content: str, said: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InputError) as refused:
        read_input(path)
    assert str(refused.value).startswith(f"{path}: {said}")
    assert "\n" not in str(refused.value)


def test_a_last_line_that_is_cut_is_left_out_and_said(tmp_path: Path) -> None:
    line = json.dumps(SGLANG)
    capture = capture_of(tmp_path, f"{line}\n{line}\n{line[:60]}")
    assert len(trials_in(capture)) == 2
    notes = [e.data["sentence"] for e in capture.events if e.kind == "check"]
    assert notes == ["The file breaks off in its last row; the rows before it were read."]


def test_several_files_are_one_sweep(tmp_path: Path) -> None:
    paths = [
        written(
            tmp_path, {**VLLM, "max_concurrency": c, "output_throughput": 10.0 * c}, f"{c}.json"
        )
        for c in (1, 4, 2)
    ]
    capture = read_inputs(paths)
    assert [t.concurrency for t in trials_in(capture)] == [1, 4, 2]
    assert capture.meta["benchmark"]["judged"] == 1
    assert [s.path for s in capture.sources] == [str(path) for path in paths]


def test_a_capture_keeps_the_trials_on_disk(tmp_path: Path) -> None:
    capture = capture_of(tmp_path, [VLLM, {**VLLM, "max_concurrency": 16}])
    write_capture(tmp_path / "kept.sqlite", capture)
    again = read_capture(tmp_path / "kept.sqlite")
    assert trials_in(again) == trials_in(capture)
    assert again.subject == capture.subject


def test_settings_that_rows_do_not_share_are_not_the_subjects(tmp_path: Path) -> None:
    rows = [{**VLLM, "max_num_seqs": 4}, {**VLLM, "max_num_seqs": 8}]
    assert capture_of(tmp_path, rows).subject.max_num_seqs is None


def test_failures_are_said(tmp_path: Path) -> None:
    def checks(content: object) -> list[dict[str, object]]:
        events = capture_of(tmp_path, content).events
        return [dict(e.data) for e in events if e.kind == "check"]

    assert checks(VLLM) == [{"sentence": "2 of 42 requests failed; all figures are of the others."}]
    assert checks(FAILED) == [
        {
            "sentence": "All 42 requests failed: there is no figure of one that came back.",
            "class": "undetermined",
            "blocks": ["verdict"],
        }
    ]
    assert checks([VLLM, FAILED])[0] == {"sentence": "In 1 of 2 trials every request failed."}
