"""How fast a server's log is read, and in how much memory.

Run `python benchmarks/log.py FOLDER`. The log is made there (vLLM's: a periodic line among some
thirty of the access log, now and then a traceback) and read in a new process each time, so that the
memory is its own.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

import log_text

TRIES = 5
READ = """
import resource, sys, time
from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.server_log.reader import read_server_log
start, start_cpu = time.perf_counter(), time.process_time()
capture = read_server_log(sys.argv[1])
read, read_cpu = time.perf_counter(), time.process_time()
diagnose(capture)
print(read - start, read_cpu - start_cpu, time.perf_counter() - read,
      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
      sum(sample.name == "running" for sample in capture.engine_samples))
"""


def read(path: Path) -> tuple[float, ...]:
    """Return seconds to the capture, CPU seconds, seconds to the diagnosis, MiB and samples."""
    command = [sys.executable, "-c", READ, str(path)]
    return tuple(map(float, subprocess.check_output(command, text=True).split()))


def main() -> None:
    """Print speed and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size-mb", type=int, default=200)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / f"vllm-{options.size_mb}.log"
    periods = log_text.make(path, options.size_mb)
    size_mb = path.stat().st_size / 1e6
    runs = [read(path) for _ in range(TRIES)]
    for *_, samples in runs:
        if samples != periods + 1:  # each line speaks for its period, the last also for its end
            raise SystemExit(f"{samples:.0f} samples were read, {periods} lines written")
    read_s, cpu_s, judged_s = (statistics.median(run[n] for run in runs) for n in range(3))
    peak_mib = max(run[3] for run in runs)
    print(
        f"{path.name}: {size_mb / read_s:.0f} MB/s ({read_s:.2f} s, {periods:,} periodic lines), "
        f"{size_mb / cpu_s:.0f} MB a CPU second, peak {peak_mib:.0f} MiB; diagnosed in another "
        f"{judged_s:.2f} s"
    )


if __name__ == "__main__":
    main()
