"""Threads and processes by the ids that nsys gives them across machines.

A global thread id holds the machine in its upper bits, the process in 24 bits above the lowest 24,
which are the thread; a global process id is the same with the lowest 24 bits zero (User Guide,
"Serialized process and thread identifiers").
"""

from __future__ import annotations

import numpy as np

from stallscope.profiler.nsys.database import Database
from stallscope.profiler.nsys.growing import Coded
from stallscope.profiler.trace.timeline import UNKNOWN, SmallInts

_BITS = 24
_LOW = (1 << _BITS) - 1


def process_of(global_tid: int) -> int:
    """Return the global process id of a global thread id."""
    return global_tid & ~_LOW


def process_number(global_id: int) -> int:
    """Return the operating system's number of the process in a global thread or process id."""
    return (global_id >> _BITS) & _LOW


class Threads:
    """Threads in the order in which they are met; their place is the trace's index."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}

    def place(self, global_tid: object) -> int:
        """Return the index of a thread, −1 for what is none."""
        if type(global_tid) is not int:
            return UNKNOWN
        return self._places.setdefault(global_tid, len(self._places))

    def places(self, coded: Coded | None, count: int) -> SmallInts:
        """Return the index of each row's thread, all −1 where there is no such column."""
        if coded is None:
            return np.broadcast_to(np.int32(UNKNOWN), count)
        of_codes = [self.place(value) for value in coded.values.tolist()]
        if of_codes == list(range(len(of_codes))):
            return coded.code
        return np.array([*of_codes, UNKNOWN], dtype=np.int32)[coded.code]

    def processes(self, thread: SmallInts) -> SmallInts:
        """Return for each thread index the place of its process among `process_ids`."""
        ids = self.process_ids()
        of_threads = [ids.index(process_of(tid)) for tid in self._places]
        return np.array([*of_threads, UNKNOWN], dtype=np.int32)[thread]

    def process_ids(self) -> list[int]:
        """Return the global process ids of all threads met."""
        return sorted({process_of(tid) for tid in self._places})

    def labels(self, database: Database) -> tuple[str, ...]:
        """Name each thread: by its own name where the file has one, and its number."""
        rows = list(database.rows("ThreadNames", ("globalTid", "nameId")))
        texts = database.texts(sorted({key for _, key in rows if isinstance(key, int)}))
        names = {tid: texts.get(key) for tid, key in rows}
        return tuple(
            f"{names.get(tid) or 'thread'} {tid & _LOW}"
            if len(self.process_ids()) == 1
            else f"{names.get(tid) or 'thread'} {tid & _LOW} of process {process_number(tid)}"
            for tid in self._places
        )
