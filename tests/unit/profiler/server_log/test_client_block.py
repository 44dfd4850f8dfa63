"""The result that a benchmark printed into the file of the server's log."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_files import periodic, read

from stallscope.profiler.benchmark.printed import blocks_of
from stallscope.profiler.file_kinds import InputKind, input_kind
from stallscope.profiler.trial import Spread, trials_from_json

BLOCK = """\
============ Serving Benchmark Result ============
Successful requests:                     40
Benchmark duration (s):                  80.00
Total input tokens:                      4000
Total generated tokens:                  20000
Output token throughput (tok/s):         250.00
---------------Time to First Token----------------
Mean TTFT (ms):                          200.00
P99 TTFT (ms):                           900.00
==================================================
"""
LOG = "".join(periodic(f"02-03 10:00:{s}0", 6, 3, 99.5) for s in range(1, 5))


def sentences(capture: object) -> list[str]:
    events = getattr(capture, "events", ())
    return [str(e.data["sentence"]) for e in events if e.kind == "check"]


@pytest.mark.parametrize(
    "text", [BLOCK + "\n" + LOG, LOG + BLOCK, LOG + BLOCK.replace("\n", "\r\n")]
)
def test_the_log_is_judged_and_the_block_tells_latencies(tmp_path: Path, text: str) -> None:
    alone = read(tmp_path, LOG)
    capture = read(tmp_path, text)
    assert capture.engine_samples == alone.engine_samples
    assert capture.subject == alone.subject
    assert "benchmark" not in capture.meta  # nothing places it in time: no source to be joined
    (trial,) = trials_from_json(capture.meta["printed_benchmark"]["trials"])
    assert (trial.completed, trial.duration_s, trial.output_tokens) == (40, 80.0, 500.0)
    assert trial.latency["ttft_s"] == Spread(0.2, None, None, 0.9, 40)
    assert any("a benchmark of 80 s printed" in s for s in sentences(capture))


def test_of_two_blocks_none_is_taken(tmp_path: Path) -> None:
    capture = read(tmp_path, BLOCK + LOG + BLOCK)
    assert "printed_benchmark" not in capture.meta
    assert any("holds 2 results that a benchmark printed" in s for s in sentences(capture))
    assert len(list(blocks_of((BLOCK + LOG + BLOCK).splitlines()))) == 2


def test_a_block_cut_by_the_log_ends_there(tmp_path: Path) -> None:
    cut = BLOCK[: BLOCK.index("P99 TTFT")]
    capture = read(tmp_path, cut + LOG)
    (trial,) = trials_from_json(capture.meta["printed_benchmark"]["trials"])
    assert trial.latency["ttft_s"] == Spread(0.2, None, None, None, 40)
    assert capture.engine_samples == read(tmp_path, LOG).engine_samples


def test_a_clients_own_log_is_the_benchmarks(tmp_path: Path) -> None:
    """It begins like a server's log, and says nothing of running requests."""
    client = "INFO 08-25 11:02:14 [__init__.py:216] Automatically detected platform cuda.\n"
    path = tmp_path / "client.txt"
    for text, kind in ((client + BLOCK, InputKind.BENCHMARK), (LOG + BLOCK, InputKind.SERVER_LOG)):
        path.write_text(text)
        assert input_kind(path) is kind
