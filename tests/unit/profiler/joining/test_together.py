"""Files of one run of which not all say when they were: what holds of each is used, and said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from joined import read_together, sentences

from stallscope.errors import InputError

LOG = "".join(
    f"INFO 02-03 10:0{minute}:00 [loggers.py:259] Engine 000: Avg prompt throughput: 0.0 tokens/s, "
    "Avg generation throughput: 900.0 tokens/s, Running: 64 reqs, Waiting: 30 reqs, GPU KV cache "
    f"usage: 99.{minute}%, Prefix cache hit rate: 0.0%\n"
    for minute in range(4)
)
SMI = """\
Tue Feb  3 10:05:00 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 590.48.01              Driver Version: 590.48.01      CUDA Version: 13.1     |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:00:09.0 Off |                    0 |
| N/A   41C    P0            300W /  700W |   72000MiB /  81559MiB |     97%      Default |
+-----------------------------------------+------------------------+----------------------+
"""
BLOCK = """\
============ Serving Benchmark Result ============
Successful requests:                     100
Benchmark duration (s):                  955.00
Total input tokens:                      100000
Total generated tokens:                  700000
Mean TTFT (ms):                          700.00
==================================================
"""
UNDATED = {
    "backend": "vllm",
    "max_concurrency": 4,
    "completed": 100,
    "duration": 955.0,
    "total_input_tokens": 100_000,
    "total_output_tokens": 700_000,
    "output_throughput": 733.0,
    "mean_ttft_ms": 700.0,
}
WHEN = (
    "When the load of {} was sent is not said: latencies are of its whole run, and what the server "
    "tells is taken to be of that run."
)


@pytest.mark.parametrize("text", [BLOCK, json.dumps(UNDATED)], ids=["printed", "json"])
def test_results_without_a_date_tell_what_the_clients_of_a_log_felt(
    text: str, tmp_path: Path
) -> None:
    for order in (("server.log", "block.txt"), ("block.txt", "server.log")):
        given = {"server.log": LOG, "block.txt": text}
        capture = read_together(tmp_path, {name: given[name] for name in order})
        (trial,) = capture.meta["printed_benchmark"]["trials"]
        assert trial["latency"]["ttft_s"]["mean"] == pytest.approx(0.7)
        # It bounds no time of the log's, and how many clients there were says nothing of it.
        assert "benchmark" not in capture.meta
        assert capture.subject.concurrency is None
        assert {s.t_ns for s in capture.engine_samples} >= {0, 180 * 10**9}
        assert [s.kind for s in capture.sources] == [
            "vllm log",
            f"results of bench serve{', as printed' if text is BLOCK else ''}",
        ]
        assert WHEN.format("block.txt") in sentences(capture)


def test_a_table_beside_both_tells_the_gpu(tmp_path: Path) -> None:
    capture = read_together(tmp_path, {"a.log": LOG, "b.txt": BLOCK, "c.txt": SMI})
    assert capture.meta["printed_benchmark"]["judged"] == 0
    assert capture.subject.device is not None
    assert {s.name for s in capture.device_samples} >= {"memory_used_bytes"}
    assert len(capture.sources) == 3


def test_several_loads_without_a_date_are_refused(tmp_path: Path) -> None:
    for given in ({"b.txt": BLOCK + BLOCK}, {"b.txt": BLOCK, "c.txt": BLOCK}):
        with pytest.raises(InputError, match="--offset"):
            read_together(tmp_path, {"server.log": LOG, **given})


def test_an_offset_puts_them_on_the_clock_all_the_same(tmp_path: Path) -> None:
    capture = read_together(tmp_path, {"server.log": LOG, "b.txt": BLOCK}, {"b.txt": 0.0})
    assert "benchmark" in capture.meta
    assert any("b.txt is joined with server.log as --offset says" in s for s in sentences(capture))


def test_telemetry_beside_results_without_a_date_is_refused(tmp_path: Path) -> None:
    csv = "timestamp, index, name, utilization.gpu [%]\n" + "".join(
        f"2026/02/03 10:00:0{i}.000, 0, NVIDIA L40S, 97 %\n" for i in range(5)
    )
    with pytest.raises(InputError, match="--offset"):
        read_together(tmp_path, {"gpu.csv": csv, "b.txt": BLOCK})


def test_a_file_of_several_texts_is_read_as_such_alone_and_beside_others(tmp_path: Path) -> None:
    mixed = f"My server is slow.\n{LOG}\nand the GPU:\n{SMI}"
    alone = read_together(tmp_path, {"issue.md": mixed})
    assert {s.kind for s in alone.sources} == {"vllm log", "nvidia-smi"}
    assert {s.path for s in alone.sources} == {str(tmp_path / "issue.md")}
    capture = read_together(tmp_path, {"issue.md": mixed, "b.txt": BLOCK})
    assert {s.kind for s in capture.sources} == {
        "vllm log",
        "nvidia-smi",
        "results of bench serve, as printed",
    }
    assert any("The text holds several parts: lines" in s for s in sentences(capture))
    assert capture.meta["printed_benchmark"]["trials"][0]["completed"] == 100


def test_a_benchmark_of_another_day_lends_no_load(tmp_path: Path) -> None:
    dated = {**UNDATED, "date": "20251128-233529", "num_prompts": 100}
    path = {"issue.md": f"{LOG}\n{json.dumps(dated)}\n"}
    capture = read_together(tmp_path, path)
    assert capture.meta.get("benchmark") is None
    assert (capture.subject.workload, capture.subject.concurrency) == (None, None)
    assert any(s.startswith("Of results of bench serve only") for s in sentences(capture))
