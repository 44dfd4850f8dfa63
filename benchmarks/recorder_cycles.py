"""A thousand Recorders started and stopped: threads, file handles and memory before and after.

Run `python benchmarks/recorder_cycles.py`.
"""

from __future__ import annotations

import gc
import tempfile
import threading
from pathlib import Path

import psutil

from stallscope.profiler.recorder import Recorder

CYCLES = 1_000
WARM_UP = 100  # the allocator and SQLite fill their caches


def cycle(folder: Path) -> None:
    """Record one step."""
    with (
        Recorder(folder / "run.sqlite", force=True) as recorder,
        recorder.decode(1, context_tokens=2),
    ):
        pass


def state(process: psutil.Process) -> tuple[int, int, int]:
    """Return threads, handles and resident bytes."""
    gc.collect()
    return threading.active_count(), process.num_fds(), process.memory_info().rss


def main() -> None:
    """Print the state after warm-up and after all cycles."""
    process = psutil.Process()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(WARM_UP):
            cycle(Path(folder))
        before = state(process)
        for _ in range(CYCLES):
            cycle(Path(folder))
        after = state(process)
    print(f"threads {before[0]} → {after[0]}, handles {before[1]} → {after[1]}")
    print(f"resident memory {before[2] / 2**20:.1f} → {after[2] / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
