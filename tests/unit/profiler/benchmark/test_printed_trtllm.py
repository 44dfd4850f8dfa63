"""What `trtllm-bench` prints at its end, alone, in parts, several times and in a paste."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.profiler.capture import Capture
from stallscope.profiler.file_kinds import InputKind, input_kind
from stallscope.profiler.reading import read_input
from stallscope.profiler.trial import Trial, trials_from_json

RULE = "=" * 59
# 40 requests of 100 + 200 tokens in 20 s: 2 a second, 400 tokens/s out, 600 in all.
OVERVIEW = f"""\
{RULE}
= PERFORMANCE OVERVIEW
{RULE}
Request Throughput (req/sec):                     2.0000
Total Output Throughput (tokens/sec):             400.0000
Total Token Throughput (tokens/sec):              600.0000
Total Latency (ms):                               20000.0000
Average request latency (ms):                     4000.0000
Per User Output Throughput [w/ ctx] (tps/user):   50.0000
Average time-to-first-token [TTFT] (ms):          20.1000
Average time-per-output-token [TPOT] (ms):        20.0000
"""
PERCENTILES = """\

-- Per-Request Time-per-Output-Token [TPOT] Breakdown (ms)

[TPOT] MINIMUM: 18.0000
[TPOT] AVERAGE: 20.0000
[TPOT] P50    : 19.5000
[TPOT] P99    : 25.0000

-- Request Latency Breakdown (ms) -----------------------

[Latency] P50    : 3900.0000
[Latency] AVERAGE: 4000.0000
"""
DETAILS = f"""\
[01/15/2026-01:15:18] [TRT-LLM] [I]

{RULE}
= PYTORCH BACKEND
{RULE}
Model:\t\t\tmeta-llama/Llama-3.1-8B
Model Path:\t\tNone
Dtype:\t\t\tbfloat16
KV Cache Dtype:\t\tNone
Quantization:\t\tFP8

{RULE}
= REQUEST DETAILS
{RULE}
Number of requests:             40
Number of concurrent requests:  8.0000
Average Input Length (tokens):  100.0000
Average Output Length (tokens): 200.0000
{RULE}
= WORLD + RUNTIME INFORMATION
{RULE}
TP Size:                2
PP Size:                1
Max Runtime Batch Size: 64
Max Runtime Tokens:     8192
Issue Rate (req/sec):   1.0000E+05

"""
DATASET = f"""
{RULE}
= DATASET DETAILS
{RULE}
Number of Sequences:  40
MIN:   100.0000           200.0000           300.0000
"""
WHOLE = DETAILS + OVERVIEW + PERCENTILES + DATASET


def read(folder: Path, text: str) -> Capture:
    path = folder / "run.txt"
    path.write_text(text)
    return read_input(path)


def trials(capture: Capture) -> tuple[Trial, ...]:
    return trials_from_json(capture.meta["benchmark"]["trials"])


def test_a_whole_report_is_read(tmp_path: Path) -> None:
    capture = read(tmp_path, WHOLE)
    assert input_kind(tmp_path / "run.txt") is InputKind.BENCHMARK
    (found,) = trials(capture)
    assert (found.completed, found.duration_s, found.in_flight) == (40, 20.0, 8.0)
    assert (found.input_tokens, found.output_tokens) == (100.0, 200.0)
    assert (found.input_tokens_per_s, found.output_tokens_per_s) == (200.0, 400.0)
    tpot, e2e = found.latency["tpot_s"], found.latency["e2e_s"]
    assert (tpot.mean, tpot.p50, tpot.p99, tpot.least) == pytest.approx(
        (0.02, 0.0195, 0.025, 0.018)
    )
    assert (e2e.mean, e2e.p50) == pytest.approx((4.0, 3.9))
    assert found.latency["ttft_s"].mean == pytest.approx(0.0201)
    told = capture.subject
    assert (told.engine, told.dtype, told.kv_dtype) == ("tensorrt-llm", "fp8", None)
    assert (told.num_devices, told.max_num_seqs, told.max_num_batched_tokens) == (2, 64, 8192)
    assert not [e for e in capture.events if "Not read" in str(e.data)]


def test_the_overview_alone_is_enough(tmp_path: Path) -> None:
    for text in (OVERVIEW, f"Hi!\n```\n{OVERVIEW}```\nThanks\n", f"> {RULE}\n> {OVERVIEW}"):
        (found,) = trials(read(tmp_path, text))
        assert (found.completed, found.output_tokens_per_s) == (None, 400.0)
        assert found.latency["tpot_s"].mean == pytest.approx(0.02)


def test_several_reports_are_several_loads(tmp_path: Path) -> None:
    second = WHOLE.replace("400.0000", "500.0000").replace("Size: 64", "Size: 32")
    found = trials(read(tmp_path, WHOLE + "\n$ again\n" + second))
    assert [t.output_tokens_per_s for t in found] == [400.0, 500.0]
    assert [t.completed for t in found] == [40, 40]


def test_sections_without_an_overview_are_no_results(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text(DETAILS)
    assert input_kind(tmp_path / "run.txt") is not InputKind.BENCHMARK


def test_a_clients_own_lines_are_not_called_a_servers_log(tmp_path: Path) -> None:
    own = "INFO 09-29 23:37:34 [__init__.py:243] Automatically detected platform cuda.\n"
    block = (
        "============ Serving Benchmark Result ============\n"
        "Successful requests:                     100\n"
        "Benchmark duration (s):                  955.00\n"
        "Mean TTFT (ms):                          700.00\n"
        f"{'=' * 50}\n"
    )
    for text in (own + block, own + WHOLE):
        capture = read(tmp_path, text)
        assert len(trials(capture)) == 1
        assert not [e for e in capture.events if "Not read" in str(e.data)]
