"""The bandwidth probe against a C read loop (gcc, two threads, huge pages), and how long it takes.

Run `python benchmarks/bandwidth.py`.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # torch reads it once, as it loads

from paired import interleave, ratio

from stallscope.runner.probe import GIB, probe_stream

PAIRS = 40
SOURCE = Path(__file__).with_name("stream_read.c")


def main() -> None:
    """Print probe / C and the probe's own time."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/stream_read"
        flags = ["-O3", "-march=native", "-ffast-math", "-pthread"]
        subprocess.run(["gcc", *flags, str(SOURCE), "-o", program], check=True)
        took_s: list[float] = []

        def probe() -> float:
            start_s = time.perf_counter()
            found = probe_stream(GIB, "cpu")
            took_s.append(time.perf_counter() - start_s)
            return found.bytes_per_s

        def read_in_c() -> float:
            return float(subprocess.run([program], check=True, capture_output=True).stdout)

        pairs = interleave(probe, read_in_c, pairs=PAIRS)
    print(f"probe / C: {ratio(pairs)}")
    middle = sorted(c for _, c in pairs)[PAIRS // 2]
    print(f"C reads {middle / 1e9:.1f} GB/s; the probe takes {sorted(took_s)[PAIRS // 2]:.2f} s")


if __name__ == "__main__":
    main()
