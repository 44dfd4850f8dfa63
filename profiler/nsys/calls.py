"""Calls of host threads into the CUDA runtime and driver, and what each launched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stallscope.profiler.nsys.call_kinds import call_kind
from stallscope.profiler.nsys.database import Database
from stallscope.profiler.nsys.growing import Coded, Columns, Kind
from stallscope.profiler.nsys.launches import Ids, match, match_processes
from stallscope.profiler.nsys.sound_rows import sound
from stallscope.profiler.nsys.texts import distinct
from stallscope.profiler.nsys.threads import Threads
from stallscope.profiler.nsys.timed_columns import timed_columns
from stallscope.profiler.trace.timeline import (
    UNKNOWN,
    Bytes,
    CallKind,
    Calls,
    Ints,
    SmallInts,
    empty,
)

RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
SYNCHRONIZATION = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
# Kinds of CUpti_ActivitySynchronizationType in which the host waits: event, stream, context. In the
# remaining one a stream waits for an event.
_HOST_WAITS = (1, 3, 4)


@dataclass(frozen=True, slots=True)
class Launches:
    """The calls, and by which correlation id of which process what they launched is found."""

    calls: Calls
    ids: Ids
    process: SmallInts  # place in `process_ids`
    process_ids: tuple[int, ...]
    damaged: int = 0

    def of(self, columns: Columns) -> tuple[Ints, SmallInts]:
        """Return for rows of a device when the call that launched each began, and on which thread.

        Both are −1 where the file does not say.
        """
        count = len(columns["start"])
        if "correlationId" not in columns or not len(self.calls) or not count:
            return np.full(count, UNKNOWN, dtype=np.int64), np.full(count, UNKNOWN, dtype=np.int32)
        ids, process = columns["correlationId"], self._processes(columns)
        if len(self.process_ids) == 1:
            row = match(ids, self.ids)
            if not _is_all(process, 0):
                row[process > 0] = UNKNOWN
        else:
            row = match_processes(ids, process, self.ids, self.process)
        found = row != UNKNOWN
        start = self.calls.start_ns[row]
        thread = self.calls.thread[row]
        start[~found], thread[~found] = UNKNOWN, UNKNOWN
        return start, thread

    def _processes(self, columns: Columns) -> SmallInts:
        coded: Coded | None = columns.get("globalPid")
        if coded is None:
            return np.broadcast_to(np.int32(UNKNOWN), len(columns["start"]))
        places = {pid: place for place, pid in enumerate(self.process_ids)}
        other = len(places)  # a process that made no call
        of_codes = [places.get(value, other) for value in coded.values.tolist()]
        if len(of_codes) == 1 and not np.any(coded.code):
            return np.broadcast_to(np.int32(of_codes[0]), len(coded.code))
        return np.array([*of_codes, UNKNOWN], dtype=np.int32)[coded.code]


def read_calls(database: Database, threads: Threads) -> Launches:
    """Read the calls; where none were traced, the host's waits for the device stand for them."""
    kinds: dict[str, Kind] = {"globalTid": "coded", "correlationId": "uint32", "nameId": "int32"}
    columns = timed_columns(database, RUNTIME, kinds)
    if not columns:
        return _waits(database)
    columns, damaged = sound(columns)
    count = len(columns["start"])
    thread = threads.places(columns.get("globalTid"), count)
    ids = columns.get("correlationId")
    return Launches(
        Calls(columns["start"], columns["end"], thread, _kinds(database, columns, count)),
        np.zeros(count, dtype=np.uint32) if ids is None else ids,
        _process_places(threads, thread),
        tuple(threads.process_ids()),
        damaged,
    )


def _is_all(process: SmallInts, place: int) -> bool:
    """Say whether a column is one value throughout that is not stored for each row."""
    return process.strides == (0,) and bool(process[0] == place)


def _process_places(threads: Threads, thread: SmallInts) -> SmallInts:
    if len(threads.process_ids()) == 1:
        return np.broadcast_to(np.int32(0), len(thread))
    return threads.processes(thread)


def _kinds(database: Database, columns: Columns, count: int) -> Bytes:
    if "nameId" not in columns or not count:
        return np.full(count, CallKind.OTHER, dtype=np.uint8)
    used, place = distinct(columns["nameId"])
    texts = database.texts(used)
    of_used = [call_kind(texts.get(key, "")) for key in used]
    if len(used) == 1:
        return np.full(count, of_used[0], dtype=np.uint8)
    return np.array(of_used, dtype=np.uint8)[place]


def _waits(database: Database) -> Launches:
    """Read the waits that CUPTI itself records, of processes: their threads are not known."""
    columns = timed_columns(database, SYNCHRONIZATION, {"syncType": "uint8"}, needed=("syncType",))
    if not columns:
        none: Calls = empty(Calls)
        return Launches(none, np.empty(0, dtype=np.uint32), none.thread, ())
    columns, damaged = sound(columns)
    waits = np.isin(columns["syncType"], _HOST_WAITS)
    count = int(waits.sum())
    calls = Calls(
        columns["start"][waits],
        columns["end"][waits],
        np.full(count, UNKNOWN, dtype=np.int32),
        np.full(count, CallKind.SYNC, dtype=np.uint8),
    )
    return Launches(calls, np.zeros(count, dtype=np.uint32), calls.thread, (), damaged)
