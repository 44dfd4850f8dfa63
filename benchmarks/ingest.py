"""How fast an nsys export becomes a diagnosis: kernels a second, peak memory, and nsys itself.

Run `python benchmarks/ingest.py CACHE [KERNELS …]`. CACHE is a folder for the exports that it
makes (124 bytes a kernel); they are kept and used again. Each reading is a process of its own, so
that its peak memory is its own; the time is from the file, in the page cache, to the diagnosis,
without imports. Where nsys is installed it takes turns with ours.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nsys_traces import build

SIZES = (1_000_000, 2_000_000, 10_000_000)
RUNS = 5
# The reports that hold what a trace is read for: nsys's names, then those until 2022.
REPORTS = (("cuda_gpu_kern_sum", "nvtx_kern_sum"), ("gpukernsum", "nvtxkernsum"))
LARGEST_FOR_NSYS = 1_000_000


def export(cache: Path, kernels: int) -> Path:
    """Return the export of this size, made if it is not there."""
    path = cache / f"kernels-{kernels}.sqlite"
    if not path.exists():
        build(path, kernels)
    with path.open("rb") as file:  # into the page cache; not at once, as a child's peak memory
        while file.read(1 << 24):  # counts from that of the process which started it
            pass
    return path


def read_once(path: Path) -> None:
    """Diagnose an export and print kernels, seconds, CPU seconds and peak memory in bytes."""
    from stallscope.analyzers.diagnose import diagnose
    from stallscope.profiler.nsys.sqlite_reader import read_nsys_sqlite
    from stallscope.profiler.trace.to_capture import capture_of

    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    trace = read_nsys_sqlite(path)
    kernels = len(trace.kernels)
    capture = capture_of([trace])
    del trace
    diagnosis = diagnose(capture)
    took_s, cpu_s = time.perf_counter() - start_s, time.process_time() - start_cpu_s
    (joined,) = (event.data for event in capture.events if event.kind == "trace_join")
    if diagnosis.verdict.bottleneck != "bandwidth" or joined["launch"] < 0.99:
        raise SystemExit(f"not the answer that the file was made for: {diagnosis.verdict.sentence}")
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(kernels, took_s, cpu_s, peak_bytes)


def reading(path: Path) -> tuple[float, ...]:
    """Diagnose an export in a process of its own."""
    command = [sys.executable, __file__, "--read", str(path)]
    return tuple(map(float, subprocess.check_output(command, text=True).split()))


def nsys_s(nsys: str, path: Path) -> float | None:
    """Time nsys stats with both reports; None where this version has neither name."""
    for reports in REPORTS:
        names = [word for report in reports for word in ("--report", report)]
        with tempfile.TemporaryDirectory() as folder:
            output = ["--format", "csv", "--output", str(Path(folder) / "x")]
            start_s = time.perf_counter()
            subprocess.run([nsys, "stats", *names, *output, str(path)], capture_output=True)
            took_s = time.perf_counter() - start_s
            if len(list(Path(folder).iterdir())) == len(reports):
                return took_s
    return None


def main(cache: Path, sizes: list[int]) -> None:
    """Print a row for each size."""
    cache.mkdir(parents=True, exist_ok=True)
    nsys = shutil.which("nsys")
    print(f"{os.cpu_count()} cores; {RUNS} readings each: median (best)")
    for size in sizes:
        path = export(cache, size)
        runs, theirs = [], []
        for _ in range(RUNS):
            runs.append(reading(path))
            if nsys and size <= LARGEST_FOR_NSYS and (took_s := nsys_s(nsys, path)) is not None:
                theirs.append(took_s / runs[-1][1])
        kernels = runs[0][0]
        rates = [kernels / seconds / 1e6 for _, seconds, _, _ in runs]
        cpu_s = statistics.median(cpu for _, _, cpu, _ in runs)
        peak = max(peak for _, _, _, peak in runs) / 2**20
        print(
            f"{kernels:>12,.0f} kernels: {statistics.median(rates):.2f} ({max(rates):.2f}) M/s, "
            f"{kernels / cpu_s / 1e6:.2f} M per CPU second, peak {peak:,.0f} MiB"
        )
        if theirs:
            ratio = statistics.median(theirs)
            print(f"{'':>12} nsys stats takes {ratio:.1f} times as long (least {min(theirs):.1f})")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read_once(Path(sys.argv[2]))
    elif len(sys.argv) > 1:
        main(Path(sys.argv[1]), [int(size) for size in sys.argv[2:]] or list(SIZES))
    else:
        raise SystemExit(__doc__)
