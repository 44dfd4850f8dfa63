"""How long threads of this process were ready to run and had no core, by Linux' scheduler."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from stallscope.profiler.task_files import TaskFiles

# Of the wall time that reading may take: 11 µs with 6 threads, 0.7 ms with 200.
_MOST_COST = 1e-3


class RunQueue:
    """Reads the second figure of /proc/self/task/TID/schedstat: nanoseconds on a run queue.

    `longest()` reads, `threads()` tells the other figure of that reading. Both are means since the
    reading before; a reading that would cost more than 0.1 % of a core is left out. Its cost is
    its CPU time (`work`): on a full machine it may last a hundred times as long.
    """

    def __init__(
        self,
        proc: Path,
        clock: Callable[[], int] = time.perf_counter_ns,
        work: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._tasks = str(proc / "self" / "task")
        self._files = TaskFiles(self._tasks, "schedstat")
        self._clock, self._work = clock, work
        self._waited_ns: dict[str, int] = {}
        self._read_ns, self._next_ns = clock(), 0
        self._threads: float | None = None
        with suppress(OSError):  # then the first call, a probe, says what is missing
            self._read()

    def longest(self) -> float | None:
        """Return the share of the time that the thread waited that waited longest."""
        now_ns = self._clock()
        self._threads = None
        if now_ns < self._next_ns:
            return None
        length_ns = max(1, now_ns - self._read_ns)
        waits = self._read()
        self._threads = sum(waits) / length_ns
        return min(1.0, max(waits, default=0) / length_ns)

    def threads(self) -> float | None:
        """Return how many threads waited, on average; None where `longest` did not read."""
        return self._threads

    def close(self) -> None:
        """Let go of the files."""
        self._files.close()

    def _read(self) -> list[int]:
        """Return what each thread waited since the last time; one that is new, since it began."""
        self._read_ns, work_ns = self._clock(), self._work()
        before, self._waited_ns = self._waited_ns, {}
        for task, text in self._files.read():
            waited_ns = _waited_ns(text)
            if waited_ns is not None:
                self._waited_ns[task] = waited_ns
        if not self._waited_ns:
            raise OSError(f"no thread under {self._tasks} has a schedstat that counts")
        self._next_ns = self._read_ns + round((self._work() - work_ns) / _MOST_COST)
        return [max(0, now - before.get(task, 0)) for task, now in self._waited_ns.items()]


def _waited_ns(schedstat: bytes) -> int | None:
    """Return a thread's time on run queues; None where nothing is counted.

    A kernel without CONFIG_SCHED_INFO answers three zeros: no time run, none waited, no turn.
    """
    try:
        _, waited, turns = schedstat.split()
    except ValueError:
        return None
    return int(waited) if int(turns) else None
