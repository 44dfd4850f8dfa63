"""The CPU time of this process and of those that it started (Linux): an engine's own workers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

_SMALL = 65_536  # bytes
_MOST = 256  # processes: an engine has as many as devices and cores, and walking costs time


def own_cpu_s(proc: str = "/proc") -> float:
    """Return the CPU seconds of this process, its descendants, and its children that have ended."""
    times = os.times()
    ended_s = times.children_user + times.children_system
    live = [_spent_s(proc, pid) for pid in descendants(proc, "self")]
    return time.process_time() + ended_s + sum(live)


def descendants(proc: str, pid: str) -> Iterator[str]:
    """Yield the processes that a process started, and those that these started.

    None where the kernel does not list children (CONFIG_PROC_CHILDREN).
    """
    waiting, count = [pid], 0
    while waiting and count < _MOST:
        for child in _children(proc, waiting.pop()):
            count += 1
            waiting.append(child)
            yield child


def _children(proc: str, pid: str) -> list[str]:
    try:
        tasks = os.listdir(f"{proc}/{pid}/task")
    except OSError:  # it has just ended
        return []
    found = (_read(f"{proc}/{pid}/task/{task}/children") for task in tasks)
    return [child for text in found for child in text.split()]


def _read(path: str) -> str:
    """Return a small file's text; empty where there is none."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(file, _SMALL).decode(errors="replace")
    except OSError:  # its process has just ended
        return ""
    finally:
        os.close(file)


def _spent_s(proc: str, pid: str) -> float:
    """Return what a process and its ended children ran, from /proc/PID/stat; 0 once it is gone."""
    text = _read(f"{proc}/{pid}/stat")
    # The name may hold blanks and brackets; user, system and both of the children's come 12th to
    # 15th after it (man 5 proc_pid_stat: fields 14 to 17).
    ticks = [int(figure) for figure in text.rpartition(")")[2].split()[11:15]]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")
