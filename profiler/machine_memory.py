"""The machine's memory, or what the control group of this process leaves of it."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from stallscope.profiler.cgroup import MemoryLimit, tightest_memory_limit
from stallscope.profiler.proc_files import OpenFile, meminfo_bytes

_ONE_READING_NS = 1_000_000
_STAT_BYTES = 16_384  # memory.stat has some fifty lines


class MachineMemory:
    """Reads what there is and what is available; OSError or ValueError where nothing says it."""

    def __init__(self, proc: Path) -> None:
        self._limit: MemoryLimit | None = tightest_memory_limit()
        self._meminfo = OpenFile(proc / "meminfo", fresh_ns=_ONE_READING_NS)
        files = () if self._limit is None else self._limit.files
        self._group = tuple(OpenFile(file, size=_STAT_BYTES) for file in files)

    def total_bytes(self) -> float:
        """Return the memory that this process could have at most."""
        total = self._of_machine(b"MemTotal", "total")
        return total if self._limit is None else min(total, self._limit.limit_bytes)

    def available_bytes(self) -> float:
        """Return the memory that could be had now without swapping."""
        available = self._of_machine(b"MemAvailable", "available")
        if self._limit is None:
            return available
        usage, stat = (read() for read in self._group)
        return min(available, self._limit.left_bytes(usage, stat))

    def close(self) -> None:
        """Let go of the files."""
        for file in (self._meminfo, *self._group):
            file.close()

    def _of_machine(self, name: bytes, elsewhere: str) -> int:
        if sys.platform == "linux":
            return meminfo_bytes(self._meminfo(), name)
        found: int = getattr(psutil.virtual_memory(), elsewhere)
        return found
