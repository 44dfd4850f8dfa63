"""The CPU time of this process and of those that it started (Linux): an engine's own workers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from stallscope.profiler.task_files import TaskFiles

_SMALL = 65_536  # bytes
_MOST = 256  # processes: an engine has as many as devices and cores, and walking costs time


class OwnCpu:
    """Reads the CPU seconds of this process, its descendants, and its children that have ended."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._children = TaskFiles(f"{proc}/self/task", "children")

    def __call__(self) -> float:
        times = os.times()
        ended_s = times.children_user + times.children_system
        live = [_spent_s(self._proc, pid) for pid in self.descendants()]
        return time.process_time() + ended_s + sum(live)

    def descendants(self) -> Iterator[str]:
        """Yield the processes that this one started, and those that these started.

        None where the kernel does not list children (CONFIG_PROC_CHILDREN).
        """
        try:
            waiting = [pid for _, text in self._children.read() for pid in text.decode().split()]
        except OSError:
            return
        count = 0
        while waiting and count < _MOST:
            pid = waiting.pop()
            yield pid
            count += 1
            waiting.extend(_children(self._proc, pid))

    def close(self) -> None:
        """Let go of the files."""
        self._children.close()


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
