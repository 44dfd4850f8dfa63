"""How fast each reader of large text files is, and in how much memory.

Run `python benchmarks/readers.py FOLDER [--size-mb N] [NAME …]`. The files are made there by rule;
each is read in a new process, so that the memory is its own.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import log_text
import telemetry_text

READ = """
import resource, sys, time
from pathlib import Path
from stallscope.garbage import collected_seldom
from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.reading import read_inputs
start = time.process_time()
with collected_seldom():
    capture = read_inputs([Path(sys.argv[1])])
    read = time.process_time()
    diagnose(capture)
judged = time.process_time()
print(read - start, judged - read, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
GAUGES = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
COUNTERS = ("prompt_tokens_total", "generation_tokens_total", "request_success_total")


def _pages() -> Iterator[str]:
    """Yield a vLLM server's page each second, with the time of each scrape."""
    rng, totals = random.Random("pages"), dict.fromkeys(COUNTERS, 0)
    labels, second = '{engine="0",model_name="m"}', 1_760_000_000
    while True:
        second += 1
        page = [f"# scrape_unix_ms {second * 1000}\n"]
        for name in GAUGES:
            value = rng.random() if "perc" in name else rng.randint(0, 64)
            page += [f"# TYPE vllm:{name} gauge\n", f"vllm:{name}{labels} {value}\n"]
        for name in COUNTERS:
            totals[name] += rng.randint(0, 3000)
            page += [f"# TYPE vllm:{name} counter\n", f"vllm:{name}{labels} {totals[name]}\n"]
        page += [f'python_gc_objects_total{{generation="{i}"}} {i}\n' for i in range(40)]
        yield "".join(page)


def _logs() -> Iterator[str]:
    yield log_text.START
    yield from log_text.periods(random.Random("log"))


def _periodic_logs() -> Iterator[str]:
    yield log_text.START
    for period in log_text.periods(random.Random("log")):
        yield period.splitlines(keepends=True)[-1]


def _result(path: Path, size_mb: float) -> None:
    """Write what `vllm bench serve --save-detailed` does of many requests."""
    rng, gaps = random.Random("bench"), 128
    count = int(size_mb * 1e6 / (gaps * 21))
    itls = [[rng.uniform(0.01, 0.02) for _ in range(gaps)] for _ in range(count)]
    ttfts = [rng.uniform(0.1, 0.5) for _ in range(count)]
    duration = count / 10
    outputs, inputs = [gaps + 1] * count, [512] * count
    said = {
        **{"backend": "vllm", "model_id": "m", "num_prompts": count, "max_concurrency": 64},
        **{"duration": duration, "completed": count, "total_input_tokens": sum(inputs)},
        **{"total_output_tokens": sum(outputs), "request_throughput": count / duration},
        **{"output_throughput": sum(outputs) / duration, "mean_ttft_ms": 300.0},
        **{"mean_tpot_ms": 15.0, "mean_itl_ms": 15.0, "median_ttft_ms": 300.0, "p99_ttft_ms": 500},
        **{"input_lens": inputs, "output_lens": outputs, "ttfts": ttfts, "itls": itls},
        "errors": [""] * count,
    }
    path.write_text(json.dumps(said))


def _written(texts: Callable[[], Iterator[str]]) -> Callable[[Path, float], None]:
    def write(path: Path, size_mb: float) -> None:
        size = 0
        with path.open("w") as file:
            for text in texts():
                size += file.write(text)
                if size > size_mb * 1e6:
                    return

    return write


def _telemetry(form: str) -> Callable[[Path, float], None]:
    def write(path: Path, size_mb: float) -> None:
        telemetry_text.make(path, form, size_mb)

    return write


FILES: Mapping[str, Callable[[Path, float], None]] = {
    "server-log": _written(_logs),
    "server-log-periodic": _written(_periodic_logs),
    "metrics": _written(_pages),
    "benchmark": _result,
    **{form: _telemetry(form) for form in telemetry_text.FORMS},
}


def main() -> None:
    """Print a row for each kind of file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FILES)}")
    parser.add_argument("--size-mb", type=float, default=50)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or FILES:
        path = options.folder / f"{name}-{options.size_mb:g}"
        if not path.exists():
            FILES[name](path, options.size_mb)
        command = [sys.executable, "-c", READ, str(path)]
        read_s, judged_s, peak = map(float, subprocess.check_output(command, text=True).split())
        size_mb = path.stat().st_size / 1e6
        print(
            f"{name:20} {size_mb:.0f} MB: {size_mb / read_s:5.1f} MB a CPU second ("
            f"{read_s:.2f} s), "
            f"judged in {judged_s:.2f} s more, peak {peak:.0f} MiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
