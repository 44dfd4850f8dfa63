"""The block that a benchmark prints, field by field, in the layouts of several years."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from benchmark_rows import VLLM, trials_in
from printed_blocks import NEW, OLD, SGLANG, block

from stallscope.errors import InputError
from stallscope.profiler.benchmark.printed import blocks_of
from stallscope.profiler.file_kinds import InputKind, input_kind
from stallscope.profiler.reading import read_input
from stallscope.profiler.trial import Spread, Trial


def read(folder: Path, text: str) -> tuple[Trial, ...]:
    path = folder / "out.txt"
    path.write_text(text)
    assert input_kind(path) is InputKind.BENCHMARK
    return trials_in(read_input(path))


def test_the_layout_of_benchmark_serving(tmp_path: Path) -> None:
    (trial,) = read(tmp_path, OLD)
    assert (trial.completed, trial.failed, trial.duration_s) == (40, None, 80.0)
    assert (trial.input_tokens, trial.output_tokens) == (100.0, 500.0)
    assert (trial.output_tokens_per_s, trial.input_tokens_per_s) == (250.0, 50.0)
    assert (trial.concurrency, trial.rate_per_s, trial.cap) == (None, None, None)
    ttft, tpot, itl = (trial.latency[m] for m in ("ttft_s", "tpot_s", "itl_s"))
    assert (ttft.mean, ttft.p50, ttft.p90, ttft.p99, ttft.n) == (0.2, 0.15, None, 0.9005, 40)
    assert (tpot.mean, tpot.p50, tpot.p99) == pytest.approx((0.02, 0.019, 0.04))
    assert (itl.mean, itl.p50, itl.p99) == pytest.approx((0.021, 0.018, 0.09))
    assert "e2e_s" not in trial.latency


def test_the_layout_of_bench_serve(tmp_path: Path) -> None:
    (trial,) = read(tmp_path, NEW)
    assert (trial.completed, trial.failed, trial.duration_s) == (38, 2, 19.0)
    assert (trial.rate_per_s, trial.cap, trial.concurrency) == (1.5, 8, None)
    assert trial.tokens_per_step == 2.2
    assert trial.latency["ttft_s"] == Spread(0.05, 0.04, 0.08, 0.1, 38)
    assert trial.latency["e2e_s"] == Spread(2.05, None, None, 3.0, 38)


def test_the_layout_of_sglang(tmp_path: Path) -> None:
    """No rate, no cap; gaps of 0 are gaps that nobody timed."""
    (trial,) = read(tmp_path, SGLANG)
    assert (trial.rate_per_s, trial.concurrency, trial.cap) == (None, None, None)
    assert (trial.in_flight, trial.requests_per_s) == (61.5, 2.0)
    assert trial.latency["e2e_s"] == Spread(30.0, 29.0, None, None, 100)
    assert trial.latency["ttft_s"] == Spread(5.0, 4.0, None, 9.0, 100)
    assert "itl_s" not in trial.latency


def test_what_is_no_number_is_not_told(tmp_path: Path) -> None:
    (trial,) = read(tmp_path, OLD.replace("200.00    ", "nan       ").replace("900.50", "nan"))
    assert trial.latency["ttft_s"] == Spread(None, 0.15, None, None, 40)
    assert trial.latency["tpot_s"].mean == pytest.approx(0.02)


def test_a_few_lines_of_a_block_give_what_they_hold(tmp_path: Path) -> None:
    few = block(
        ("Output token throughput (tok/s):", "250.00"),
        ("Request throughput (req/s):", "0.50"),
        ("Median TTFT (ms):", "150.00"),
        end=False,
    )
    (trial,) = read(tmp_path, f"{few}Thanks for looking\nMean TTFT (ms): 9.0\n")
    assert (trial.completed, trial.requests_per_s, trial.output_tokens_per_s) == (None, 0.5, 250.0)
    assert trial.latency["ttft_s"].p50 == 0.15
    assert trial.latency["ttft_s"].mean is None  # it stands behind the end of the block


def test_the_load_stands_before_the_block(tmp_path: Path) -> None:
    head = (
        "INFO 08-25 11:02:14 [__init__.py:216] Automatically detected platform cuda.\n"
        "Traffic request rate: 2.5\nBurstiness factor: 1.0 (Poisson process)\n"
        "Maximum request concurrency: 16\n"
    )
    (trial,) = read(tmp_path, head + OLD)
    assert (trial.rate_per_s, trial.cap) == (2.5, 16)
    closed = head.replace("2.5", "inf")
    first, second = read(tmp_path, closed + OLD + OLD)
    assert (first.rate_per_s, first.concurrency) == (None, 16)
    assert second.concurrency is None  # it is of the run before


@pytest.mark.parametrize("mark", ["> ", "\x1b[32m", "# "])
def test_quoted_and_coloured_lines_are_the_same(tmp_path: Path, mark: str) -> None:
    plain = read(tmp_path, OLD)
    assert read(tmp_path, "".join(f"{mark}{line}\n" for line in OLD.splitlines())) == plain


def test_several_blocks_are_a_sweep_and_json_may_stand_before(tmp_path: Path) -> None:
    assert [t.completed for t in read(tmp_path, f"one\n{OLD}\nthe other\n{SGLANG}")] == [40, 100]
    path = tmp_path / "stdin"
    path.write_text(f"{json.dumps(VLLM)}\n{OLD}")
    assert [t.completed for t in trials_in(read_input(path))] == [VLLM["completed"], 40]


def test_a_block_of_no_tokens_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "images.txt"
    path.write_text(block(("Model:", "flux"), ("Request throughput (req/s):", "0.50")))
    with pytest.raises(InputError, match="or what vllm bench, SGLang or trtllm-bench printed"):
        read_input(path)


def test_a_line_that_is_nearly_a_rule_is_looked_at_once() -> None:
    """A pattern would try every way to split so many dashes: minutes."""
    lines = ["==== Serving Benchmark Result ====", "-" * 200_000 + ":"]
    started = time.perf_counter()
    (found,) = blocks_of(lines)
    assert time.perf_counter() - started < 1.0
    assert found.places == (0,)


def test_a_cap_is_read_in_the_spelling_that_sglang_long_had(tmp_path: Path) -> None:
    load = "Max reqeuest concurrency:                512       \n"
    lines = OLD.splitlines(keepends=True)
    (found,) = read(tmp_path, "".join([lines[0], load, *lines[1:]]))
    assert found.concurrency == 512
