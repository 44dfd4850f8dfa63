"""What is damaged: the fixtures of the readers' own tests, and the corpus where it is there."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import sys
import tempfile
from pathlib import Path

from fuzz_databases import small

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("STALLSCOPE_CORPUS", ROOT.parent / "shared" / "corpus"))
_FOLDERS = (
    *(
        "",
        "server_log",
        "telemetry",
        "ncu",
        "nsys",
        "trace",
        "joining",
        "metrics_page",
        "benchmark",
    ),
    "../analyzers",
)
sys.path += [str(ROOT / "tests" / "unit" / "profiler" / folder) for folder in _FOLDERS]
_MOST_BYTES = 4 << 20  # of a file: places of damage are found in its first part as well
# What of an nsys export is read; a copy of more would not fit.
_NSYS = (
    *("StringIds", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "NVTX_EVENTS"),
    *("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMSET", "TARGET_INFO_GPU", "OSRT_API"),
    *("ThreadNames", "META_DATA_EXPORT", "GPU_METRICS", "TARGET_INFO_GPU_METRICS"),
    *("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "DIAGNOSTIC_EVENT", "ANALYSIS_DETAILS"),
)


def corpus(*patterns: str) -> list[bytes]:
    """Return the files of the corpus that match, unpacked."""
    found = []
    for path in sorted(path for pattern in patterns for path in CORPUS.glob(pattern)):
        if path.is_file():
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
                found.append(file.read(_MOST_BYTES))
    return found


def captures() -> list[bytes]:
    """Captures with a row of every kind, also with notes of each, of steps alone, of a queue."""
    import test_journal as own
    from capture_builders import batch_one, gauges, request
    from test_capture_roundtrip import CAPTURE

    from stallscope.profiler.capture_writer import write_capture

    requests = tuple(request(i, i, 2 * i, 2 * i + 1, 2 * i + 3) for i in range(12))
    queue = gauges(running=(2.0, 2.0, 2.0), waiting=(5.0, 6.0, 7.0))
    queued = dataclasses.replace(batch_one(), requests=requests, engine_samples=queue)
    found = []
    for capture in (CAPTURE, batch_one(), queued):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "capture"
            write_capture(path, capture)
            found.append(small(path))
            if capture is CAPTURE:
                own.put_down(path, own.NOTES)
                found.append(small(path))
    return found


def nsys_exports() -> list[bytes]:
    """Exports of each generation of the schema."""
    from nsys_exports import GENERATIONS
    from test_nsys_generations import whole_export

    found = []
    for generation in GENERATIONS:
        with tempfile.TemporaryDirectory() as folder:
            whole_export(Path(folder), generation)
            found.append(small(Path(folder) / "export.sqlite"))
    return found + [small(path, _NSYS) for path in sorted((CORPUS / "nsys").glob("*.sqlite"))]


def nsys_stats() -> list[bytes]:
    """Summaries in each layout."""
    import test_stats_csv as own

    names = ("NEW", "OLD", "THOUSANDS", "MICROSECONDS", "TEXT", "MIXED")
    texts = [getattr(own, name) for name in names]
    more = own.COPIES + own.SIZES + own.CALLS + own.OS_CALLS + own.RANGES + own.IN_RANGES
    return [text.encode() for text in (*texts, own.NEW + more)] + corpus("nsys_stats/*.csv")


def ncu_pages() -> list[bytes]:
    """Pages long and wide."""
    import test_ncu_pages as own

    return [own.WIDE.encode(), own.LONG.encode(), *corpus("ncu/*.csv")]


def profiler_texts() -> list[bytes]:
    """Return refusals and profiles of Python, of our own making: the corpus has none."""
    from test_profiler_text import CPROFILE, NO_KERNEL, REFUSED

    return [text.encode() for text in (REFUSED, NO_KERNEL, CPROFILE)]


def kineto_traces() -> list[bytes]:
    """Traces, plain and packed."""
    import test_kineto_reader as own

    trace = {**own.HEADER, "traceEvents": own.EVENTS * 3}
    plain, spread = json.dumps(trace).encode(), json.dumps(trace, indent=1).encode()
    packed = gzip.compress(plain, mtime=0)
    return [plain, spread, json.dumps(own.EVENTS).encode(), packed, *corpus("torch/*.json.gz")]


def telemetry() -> list[bytes]:
    """Every form that nvidia-smi and DCGM print."""
    from test_telemetry_forms import TEXTS

    return [text.encode() for text in TEXTS.values()] + corpus("smi/*.*", "dcgm/*.*")


def server_logs() -> list[bytes]:
    """Logs of each engine, and of starts that failed."""
    import test_log_failures as failed
    import test_other_logs as other
    import test_sglang_log as sglang
    import test_vllm_log as vllm

    step = f"{other.ITER}elapsed_time = 0.005s, num_scheduled_requests: 10, {other.STATES}\n"
    texts = (
        vllm.START + vllm.V1 * 4 + vllm.iteration("12-22 21:44:40", 0, vllm.MIXED, 20.0) * 3,
        *(sglang.NEW * 6, step * 4, other.OLD + other.NEW),
        failed.FLAGS + failed.LOAD + failed.LOADED + failed.OOM,
    )
    found = [text.encode() for text in texts]
    docker = (
        json.dumps({"log": line, "stream": "stdout", "time": f"2026-02-03T10:00:{i % 60:02}.5Z"})
        for i, line in enumerate((vllm.START + vllm.V1 * 20).splitlines(keepends=True))
    )
    packed = gzip.compress(found[0], mtime=0)
    return [*found, "\n".join(docker).encode(), packed, *corpus("logs/*.log", "logs/*/*.log")]


def metrics_pages() -> list[bytes]:
    """Pages of each engine, alone, in series and in turn, and a table of scrapes."""
    import test_other_pages as other
    import test_page_trouble as trouble
    import test_vllm_page as vllm
    import test_wide_csv as table
    from metrics_pages import page, series

    one = page("vllm:", vllm.NOW, vllm.LABELS)
    ranks = other.sglang_new(0, 1, 3.0) + page("sglang_", other.OF_REQUESTS)
    texts = (
        series(one, one.replace("2000.0", "2100.0"), one),
        one,
        series(*(trouble.started(1.6e9 + i % 2, 10.0 * i) for i in range(6))),
        page("sglang:", other.SGLANG_OLD) + ranks,
        series(other.triton(scheduled=6, max=512), other.triton(scheduled=6, max=8, active=6)),
        page("llamacpp:", other.LLAMA) * 3,
        series(f"{trouble.GPU}50\n{one}", f"{trouble.GPU}70\n{one}"),
        table.HEADER + table.ROWS * 3,
    )
    found = corpus("prom/*", "prom_series/*", "prom_ts/*server_metrics.csv")
    return [text.encode() for text in texts] + found


def benchmarks() -> list[bytes]:
    """Results of each tool, and with each request's own times."""
    from test_benchmark_arrays import DETAILED
    from test_benchmark_files import RESULTS

    contents = [DETAILED, *(content for content, _ in RESULTS.values())]
    own = [text if isinstance(text, str) else json.dumps(text) for text in contents]
    return [text.encode() for text in own] + corpus("bench/*")


def logs_of_a_load() -> list[bytes]:
    """Logs of one load, on several clocks."""
    from scripted_load import LOAD, server_log

    return [server_log(LOAD, ahead_s=ahead_s).encode() for ahead_s in (0, 3600, -1.5)]


def gpu_of_a_load() -> bytes:
    """What nvidia-smi wrote under that load."""
    from scripted_load import LOAD, gpu_csv

    return gpu_csv(LOAD).encode()


def pastes() -> list[bytes]:
    """What several tools printed, one below the other, in turn."""
    import test_vllm_page as vllm
    from metrics_pages import page

    log, gpu = server_logs()[0][:4000], gpu_of_a_load()[:3000]
    one = page("vllm:", vllm.NOW, vllm.LABELS).encode()[:4000]
    bench = benchmarks()[1][:4000]
    parts = (log, gpu, one, bench)
    return [b"\n".join(parts[i:] + parts[:i]) for i in range(4)] + [
        b"\n".join((gpu, b"Hello", log))
    ]
