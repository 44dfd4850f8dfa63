"""Calls into the operating system's runtime in which a thread waited."""

from __future__ import annotations

import numpy as np

from stallscope.profiler.nsys.database import Database
from stallscope.profiler.nsys.sound_rows import sound
from stallscope.profiler.nsys.texts import Texts, distinct
from stallscope.profiler.nsys.threads import Threads
from stallscope.profiler.nsys.timed_columns import timed_columns
from stallscope.profiler.trace.timeline import UNKNOWN, Ranges, empty

OSRT = "OSRT_API"
_UNNAMED = "a call without a name"


def read_os_calls(database: Database, threads: Threads, texts: Texts) -> tuple[Ranges, int]:
    """Read the calls, and return how many damaged rows were left out.

    nsys traces those that can block, and leaves out the shortest.
    """
    columns = timed_columns(database, OSRT, {"globalTid": "coded", "nameId": "int32"})
    if not columns:
        none: Ranges = empty(Ranges)
        return none, 0
    columns, damaged = sound(columns)
    count = len(columns["start"])
    used, place = distinct(columns.get("nameId", np.full(count, UNKNOWN, np.int32)))
    names = database.texts(used)
    of_used = [texts.place(names.get(key, _UNNAMED)) for key in used]
    calls = Ranges(
        columns["start"],
        columns["end"],
        threads.places(columns.get("globalTid"), count),
        np.array(of_used, dtype=np.int32)[place] if count else place,
        np.full(count, UNKNOWN, dtype=np.int64),
    )
    return calls, damaged


def joined(a: Ranges, b: Ranges) -> Ranges:
    """Return the ranges of both, a's first."""
    if not len(a) or not len(b):
        return a if len(a) else b
    return Ranges(
        np.concatenate((a.start_ns, b.start_ns)),
        np.concatenate((a.end_ns, b.end_ns)),
        np.concatenate((a.thread, b.thread)),
        np.concatenate((a.text, b.text)),
        np.concatenate((a.payload, b.payload)),
    )
