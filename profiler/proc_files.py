"""Counters that Linux keeps under /proc, read through files that stay open.

psutil opens, reads, parses and closes for every figure: 105 µs for the memory of this process and
171 µs for the CPU times, measured beside a decoding model; reading files that are open already
takes 24 and 41 µs (docs/benchmarks.md). Elsewhere than on Linux psutil serves.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

HEAD_BYTES = 4096


class FileFigure:
    """A figure at the head of a file, read anew by each call; the first one opens it."""

    def __init__(self, path: Path, parse: Callable[[bytes], float]) -> None:
        self._path = path
        self._parse = parse
        self._file: int | None = None

    def __call__(self) -> float:
        """Return the figure now; OSError where there is no file, ValueError where no figure."""
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY)
        return self._parse(os.pread(self._file, HEAD_BYTES, 0))

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def rss_bytes(statm: bytes) -> int:
    """Return the resident set from the text of /proc/PID/statm, whose second figure is pages."""
    return int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE")


def busy_s(stat: bytes) -> float:
    """Return the CPU seconds of all cores from the text of /proc/stat: all but idle and iowait.

    "steal" counts; the time of guests is within "user" and "nice" already (man 5 proc_stat).
    """
    _, user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = stat.split(None, 9)
    ticks = int(user) + int(nice) + int(system) + int(irq) + int(softirq) + int(steal)
    return ticks / os.sysconf("SC_CLK_TCK")


def pressure(text: bytes) -> float:
    """Return the share of the last 10 s in which some task waited, from a /proc/pressure file.

    Raises ValueError where the line is missing.
    """
    for line in text.decode().splitlines():
        kind, *figures = line.split()
        if kind == "some":
            figure = dict(pair.split("=") for pair in figures)
            return float(figure["avg10"]) / 100
    raise ValueError('no line "some"')
