"""Counters that Linux keeps under /proc, read through files that stay open.

psutil opens, reads, parses and closes for every figure: 105 µs for the memory of this process and
171 µs for the CPU times, measured beside a decoding model; reading files that are open already
takes 24 and 41 µs (docs/benchmarks.md). Elsewhere than on Linux psutil serves.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

HEAD_BYTES = 4096


class OpenFile:
    """A file that is read anew by each call; the first one opens it.

    Within `fresh_ns` of a reading the same text is returned again: one moment's, for several.
    """

    def __init__(
        self,
        path: Path,
        *,
        size: int = HEAD_BYTES,
        fresh_ns: int = 0,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._path, self._size = path, size
        self._fresh_ns, self._clock = fresh_ns, clock
        self._file: int | None = None
        self._text, self._until_ns = b"", -1

    def __call__(self) -> bytes:
        """Return the first `size` bytes now; OSError where there is no file."""
        if self._fresh_ns and self._clock() < self._until_ns:
            return self._text
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY)
        text = os.pread(self._file, self._size, 0)
        if self._fresh_ns:
            self._text, self._until_ns = text, self._clock() + self._fresh_ns
        return text

    def close(self) -> None:
        """Let go of it, until it is read again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class FileFigure:
    """A figure at the head of a file, read anew by each call."""

    def __init__(self, path: Path, parse: Callable[[bytes], float]) -> None:
        self._file = OpenFile(path)
        self._parse = parse

    def __call__(self) -> float:
        """Return the figure now; OSError where there is no file, ValueError where no figure."""
        return self._parse(self._file())

    def close(self) -> None:
        self._file.close()


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


def meminfo_bytes(meminfo: bytes, name: bytes) -> int:
    """Return one line's bytes from the text of /proc/meminfo; ValueError where it is missing."""
    _, found, rest = meminfo.partition(b"\n" + name + b":")
    if meminfo.startswith(name + b":"):
        rest = meminfo[len(name) + 1 :]
    elif not found:
        raise ValueError(f"/proc/meminfo has no {name.decode()}")
    kilobytes, unit = rest.split(None, 2)[:2]
    if unit != b"kB":
        raise ValueError(f"/proc/meminfo tells {name.decode()} in {unit.decode()!r:.20}, not in kB")
    return int(kilobytes) * 1024


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
