"""Texts of several tools, one below the other: each is read, and what is nobody's is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture
from stallscope.profiler.file_kinds import InputKind
from stallscope.profiler.paste.split import split
from stallscope.profiler.reading import read_input

LINE = (
    "INFO 02-03 10:0{minute}:00 [loggers.py:259] Engine 000: Avg prompt throughput: 0.0 tokens/s, "
    "Avg generation throughput: 900.0 tokens/s, Running: 64 reqs, Waiting: 30 reqs, GPU KV cache "
    "usage: 99.{minute}%, Prefix cache hit rate: 0.0%\n"
)
LOG = "".join(LINE.format(minute=i) for i in range(4))
SMI = """\
Tue Feb  3 10:05:00 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 590.48.01              Driver Version: 590.48.01      CUDA Version: 13.1     |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:00:09.0 Off |                    0 |
| N/A   41C    P0            300W /  700W |   72000MiB /  81559MiB |     97%      Default |
+-----------------------------------------+------------------------+----------------------+
"""
PAGE = """\
# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a/b-7B"} 64.0
vllm:num_requests_waiting{engine="0",model_name="a/b-7B"} 30.0
"""


def read(folder: Path, text: str) -> Capture:
    path = folder / "stdin"
    path.write_text(text)
    return read_input(path)


def sentences(capture: Capture) -> list[str]:
    return [str(e.data["sentence"]) for e in capture.events if e.kind == "check"]


def test_lines_go_to_the_tool_that_printed_them() -> None:
    text = f"My server is slow.\n{LOG}\nand the GPU:\n{SMI}\nThanks!\n{PAGE}"
    pieces = split(text.splitlines(keepends=True))
    assert [(p.kind, p.first, p.last) for p in pieces] == [
        (None, 1, 1),
        (InputKind.SERVER_LOG, 2, 7),  # a traceback's lines have no mark: what follows is a log's
        (InputKind.TELEMETRY, 8, 15),
        (None, 16, 16),
        (InputKind.METRICS, 17, 20),
    ]
    assert "".join("".join(p.lines) for p in pieces) == text


def test_a_table_of_one_moment_tells_the_gpu_of_a_log(tmp_path: Path) -> None:
    capture = read(tmp_path, f"{LOG}{SMI}thanks\n")
    assert (capture.subject.engine, capture.subject.device is not None) == ("vllm", True)
    assert {s.kind for s in capture.sources} == {"vllm log", "nvidia-smi"}
    assert {s.path for s in capture.sources} == {str(tmp_path / "stdin")}
    # How busy the GPU was at that moment says nothing of the log's time; its memory stays taken.
    found = {s.name: s.value for s in capture.device_samples}
    assert found == {
        "memory_used_bytes": 72000 * 2**20,
        "memory_total_bytes": 81559 * 2**20,
        "power_limit_mw": 700_000,
    }
    said = sentences(capture)
    assert said[0] == (
        "The text holds several parts: lines 1–4 an inference server's log; lines 5–11 "
        "output of nvidia-smi or DCGM."
    )
    assert said[1] == "These lines of the text belong to none of its parts and were not read: 12."
    assert any(s.startswith("Of nvidia-smi only what stays the same is used") for s in said)


def test_a_page_beside_a_log_gives_what_the_log_lacks(tmp_path: Path) -> None:
    page = PAGE + 'vllm:cache_config_info{block_size="16",cache_dtype="fp8",engine="0"} 1.0\n'
    capture = read(tmp_path, page + LOG)
    assert (capture.subject.kv_dtype, capture.subject.block_size) == ("fp8", 16)
    assert capture.meta["metrics_page"]["model"] == "a/b-7B"
    running = [s for s in capture.engine_samples if s.name == "running"]
    assert len(running) > 3  # the log's, not the page's moment


def test_one_kind_alone_is_read_as_before(tmp_path: Path) -> None:
    for text in (LOG, SMI, PAGE, f"{LOG}\n{LOG}"):
        assert not any(" parts" in s for s in sentences(read(tmp_path, text)))


def test_an_exporters_lines_stay_with_the_engines(tmp_path: Path) -> None:
    gpu = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",modelName="NVIDIA L4"} 90\n'
    for text in (gpu + PAGE, PAGE + gpu):
        capture = read(tmp_path, text)
        assert not any(" parts" in s for s in sentences(capture))
        assert {s.name for s in capture.device_samples} == {"nvml_gpu_util"}


def test_a_part_that_cannot_be_read_is_named_and_the_rest_is_judged(tmp_path: Path) -> None:
    broken = "GPU, utilization.gpu [%], memory.used [MiB]\n"
    capture = read(tmp_path, f"{LOG}timestamp, name, utilization.gpu [%]\n")
    assert capture.subject.engine == "vllm"
    assert any(s.startswith("Not read: ") for s in sentences(capture))
    with pytest.raises(InputError, match="stdin"):
        read(tmp_path, f"hello\n{broken}")


BENCH = {
    "backend": "vllm",
    "num_prompts": 10,
    "max_concurrency": 4,
    "completed": 10,
    "duration": 20.0,
    "request_throughput": 0.5,
    "output_throughput": 64.0,
    "mean_ttft_ms": 100.0,
    "mean_tpot_ms": 20.0,
    "itls": [[0.02] * 40] * 10,
}


@pytest.mark.parametrize("indent", [None, 2])
def test_a_benchmarks_result_is_found_on_one_line_or_on_hundreds(indent: int | None) -> None:
    result = json.dumps(BENCH, indent=indent) + "\n"
    pieces = split(f"{LOG}{result}{LOG}".splitlines(keepends=True))
    lines = result.count("\n")  # 1, or 442: 40 numbers and 2 brackets for each of 10 requests, …
    assert [(p.kind, p.first, p.last) for p in pieces] == [
        (InputKind.SERVER_LOG, 1, 4),
        (InputKind.BENCHMARK, 5, 4 + lines),
        (InputKind.SERVER_LOG, 5 + lines, 8 + lines),
    ]


@pytest.mark.parametrize("line", ['{"log": "INFO hello"}\n', '{"log": "INFO hello\n', "{\n"])
def test_many_lines_that_look_like_json_are_each_looked_at_once(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, decode = [], json.JSONDecoder.raw_decode
    monkeypatch.setattr(
        json.JSONDecoder,
        "raw_decode",
        lambda self, text, idx=0: looked.append(len(text)) or decode(self, text, idx),
    )
    split([line] * 500)
    # The line itself and, where it is cut, it with a few more: JSON has no text over a line's end.
    assert sum(looked) <= 500 * 5 * len(line)


BLOCK = """\
============ Serving Benchmark Result ============
Successful requests:                     100
Benchmark duration (s):                  955.00
Total input tokens:                      100000
Total generated tokens:                  700000
Output token throughput (tok/s):         733.00
---------------Time to First Token----------------
Mean TTFT (ms):                          700.00
==================================================
"""


def test_a_printed_result_beside_gpus_is_read_as_one(tmp_path: Path) -> None:
    text = f"It is slow:\n{BLOCK}\n{SMI}"
    kinds = [p.kind for p in split(text.splitlines(keepends=True))]
    assert kinds == [None, InputKind.BENCHMARK, None, InputKind.TELEMETRY]
    capture = read(tmp_path, text)
    (trial,) = capture.meta["benchmark"]["trials"]
    assert (trial["completed"], trial["latency"]["ttft_s"]["mean"]) == (100, pytest.approx(0.7))
    assert any(s.name == "memory_used_bytes" for s in capture.device_samples)


def test_a_printed_result_is_read_with_the_log_beside_it(tmp_path: Path) -> None:
    capture = read(tmp_path, f"{BLOCK}\n{LOG}\n{SMI}")
    assert any(s.name == "running" for s in capture.engine_samples)
    (trial,) = capture.meta["printed_benchmark"]["trials"]
    assert (trial["completed"], trial["duration_s"]) == (100, 955.0)
    assert "benchmark" not in capture.meta
