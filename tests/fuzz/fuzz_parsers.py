"""The readers that are fuzzed: what each is given, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import fuzz_seeds as seeds
from fuzz_databases import damaged_database
from fuzz_json import damaged_json
from fuzz_parser import Parser

from stallscope.errors import InputError
from stallscope.profiler.benchmark.reader import read_benchmarks
from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.file_kinds import InputKind
from stallscope.profiler.metrics_page.reader import read_metrics
from stallscope.profiler.ncu.reader import read_ncu_csv
from stallscope.profiler.nsys.stats_csv import read_nsys_stats
from stallscope.profiler.profiler_text import read_profiler_text
from stallscope.profiler.reading import read_input, read_inputs, read_trace
from stallscope.profiler.server_log.reader import read_server_log
from stallscope.profiler.telemetry.reader import read_telemetry
from stallscope.profiler.trace.reduce import reduce_trace
from stallscope.profiler.trace.to_capture import capture_of_ranks


def _trace(kind: InputKind) -> Callable[[Path], Capture]:
    def read(path: Path) -> Capture:
        ranks = [reduce_trace(read_trace(path, kind))]
        if not ranks[0].holds:
            raise InputError(f"{path}: nothing in it can be judged")
        return capture_of_ranks(ranks)

    return read


def _joined(path: Path) -> Capture:
    """Join a log with what nvidia-smi wrote meanwhile."""
    gpu = path.with_name("gpu.csv")
    if not gpu.exists():
        gpu.write_bytes(seeds.gpu_of_a_load())
    return read_inputs([path, gpu])


PARSERS: Mapping[str, Parser] = {
    "capture": Parser(read_capture, seeds.captures, damaged_database),
    "nsys": Parser(_trace(InputKind.NSYS_SQLITE), seeds.nsys_exports, damaged_database),
    "nsys-stats": Parser(read_nsys_stats, seeds.nsys_stats),
    "kineto": Parser(_trace(InputKind.KINETO), seeds.kineto_traces),
    "ncu": Parser(read_ncu_csv, seeds.ncu_pages),
    "profiler-text": Parser(read_profiler_text, seeds.profiler_texts),
    "telemetry": Parser(read_telemetry, seeds.telemetry),
    "server-log": Parser(read_server_log, seeds.server_logs),
    "metrics": Parser(read_metrics, seeds.metrics_pages),
    "benchmark": Parser(lambda path: read_benchmarks([path]), seeds.benchmarks, damaged_json),
    "joined": Parser(_joined, seeds.logs_of_a_load),
    # Of several parts one can still be read; what cannot is told.
    "paste": Parser(read_input, seeds.pastes, least_refused=0.0),
}
