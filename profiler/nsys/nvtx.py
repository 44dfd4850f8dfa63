"""NVTX ranges: marks that programs set, a framework's operators, and waits for Python's lock."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stallscope.errors import InputError
from stallscope.profiler.nsys.database import Database
from stallscope.profiler.nsys.open_ranges import without_open
from stallscope.profiler.nsys.texts import Texts
from stallscope.profiler.nsys.threads import Threads, process_of
from stallscope.profiler.trace.timeline import UNKNOWN, Ranges

NVTX = "NVTX_EVENTS"
# ENUM_NSYS_EVENT_TYPE: push/pop and start/end ranges, the same imported from text; a mark has no
# length and is counted alone; a domain is created or destroyed.
_RANGES = (59, 60, 70, 71)
_MARKS = (34, 65)
_DOMAIN_CREATED = 75
_COLUMNS = ("start", "end", "eventType", "globalTid", "domainId", "text", "textId")
_PAYLOADS = ("int64Value", "uint64Value", "int32Value", "uint32Value")
# nsys --trace=python-gil writes its ranges as NVTX, in a domain of its own.
_GIL_DOMAIN = "GIL Trace"
_GIL_WAIT = "Waiting for GIL"
# Libraries set up a domain when they are loaded, whether or not they then mark anything.
_LIBRARIES = {
    _GIL_DOMAIN,
    "NCCL",
    "CCCL",
    "cuBLAS",
    "cuBLASLt",
    "cuDNN",
    "cuFFT",
    "cuSPARSE",
    "NVSHMEM",
}
# PyTorch's emit_nvtx and nsys --pytorch: "aten::mm, seq = 5, op_id = 7, sizes = [[2, 3], [3, 4]]".
_OPERATOR = re.compile(r"(?P<name>.+?), (?:seq = \d+(?:, )?)?(?:op_id = (?P<id>\d+))?")


@dataclass(slots=True)
class _Rows:
    """Ranges as they are met."""

    start_ns: list[int] = field(default_factory=list)
    end_ns: list[int] = field(default_factory=list)
    thread: list[int] = field(default_factory=list)
    text: list[int] = field(default_factory=list)
    payload: list[int] = field(default_factory=list)

    def add(self, start_ns: int, end_ns: int, thread: int, text: int, payload: int) -> None:
        self.start_ns.append(start_ns)
        self.end_ns.append(end_ns)
        self.thread.append(thread)
        self.text.append(text)
        self.payload.append(payload)

    def columns(self) -> Ranges:
        return Ranges(
            np.array(self.start_ns, dtype=np.int64),
            np.array(self.end_ns, dtype=np.int64),
            np.array(self.thread, dtype=np.int32),
            np.array(self.text, dtype=np.int32),
            np.array(self.payload, dtype=np.int64),
        )


@dataclass(frozen=True, slots=True)
class Nvtx:
    """What was read, and counts of what is no range: instants, domains that the program set up,
    ranges that were still open when the trace ended, and ranges that end before they start."""

    marks: Ranges
    operators: Ranges
    waits: Ranges
    instants: int
    domains: int
    still_open: int
    damaged: int


def read_nvtx(
    database: Database, threads: Threads, texts: Texts, window_end_ns: int | None = None
) -> Nvtx:
    """Read the ranges. An operator's payload is its op_id; a range's is its own integer.

    `window_end_ns` is when recording stopped: ranges that end then were never closed.
    Raises InputError where a time is no whole number.
    """
    marks, operators, waits = _Rows(), _Rows(), _Rows()
    instants = domains = endless = damaged = 0
    gil, strings = _gil_domains(database), _strings(database)
    kept: dict[bytes | int, tuple[_Rows, int, int | None]] = {}
    for start, end, kind, tid, domain, raw, key, payload in _events(database):
        if kind not in _RANGES:
            instants += kind in _MARKS
            if kind == _DOMAIN_CREATED:
                domains += _text(raw, strings.get(key, "")) not in _LIBRARIES
            continue
        if type(start) is not int or not (type(end) is int or end is None):
            raise InputError(
                f"{database.path}: {NVTX} holds a time that is no whole number; export again"
            )
        if end is None or end < start:
            endless += end is None
            damaged += end is not None
            continue
        known = key if raw is None else raw
        if gil and _in(gil, tid, domain):
            if _text(raw, strings.get(key, "")) != _GIL_WAIT:
                continue
            rows, place, own = waits, texts.place(_GIL_WAIT), None
        elif known in kept:
            rows, place, own = kept[known]
        else:
            text = _text(raw, strings.get(key, ""))
            name, own = _operator(text)
            rows, place = (marks if name is None else operators), texts.place(name or text)
            if name is None:  # an operator's text is of one range, and not worth keeping
                kept[known] = rows, place, own
        rows.add(start, end, threads.place(tid), place, _whole(payload) if own is None else own)
    closed_marks, closed_operators, still_open = without_open(
        marks.columns(), operators.columns(), window_end_ns
    )
    still_open += endless
    return Nvtx(
        closed_marks, closed_operators, waits.columns(), instants, domains, still_open, damaged
    )


def _text(raw: bytes | None, otherwise: str) -> str:
    return otherwise if raw is None else raw.decode("utf-8", "replace")


def _operator(text: str) -> tuple[str | None, int | None]:
    """Return an operator's name and op_id where the text is an operator's."""
    if ", op_id = " not in text and ", seq = " not in text:
        return (text, None) if text.startswith("aten::") else (None, None)
    match = _OPERATOR.match(text)
    if match is None:
        return None, None
    return match["name"], None if match["id"] is None else int(match["id"])


def _events(database: Database) -> Iterable[tuple[Any, ...]]:
    """Return start, end, type, thread, domain, text, text's id and payload of each event."""
    table = database.tables.get(NVTX)
    if table is None or not table.places.keys() >= {"start", "end", "eventType"}:
        return ()
    payloads = [name for name in _PAYLOADS if name in table.places]
    payload = f"coalesce({', '.join([*payloads, 'NULL', 'NULL'])})"
    columns = [name if name in table.places else "NULL" for name in _COLUMNS]
    if "text" in table.places:  # the same bytes come often: they are made text once
        columns[_COLUMNS.index("text")] = "CAST(text AS BLOB)"
    return database.db.execute(f"SELECT {', '.join([*columns, payload])} FROM {NVTX}")


def _whole(payload: Any) -> int:
    return payload if type(payload) is int else UNKNOWN


def _in(domains: set[tuple[int, Any]], tid: Any, domain: Any) -> bool:
    return type(tid) is int and (process_of(tid), domain) in domains


def _gil_domains(database: Database) -> set[tuple[int, Any]]:
    """Return process and number of each domain in which the interpreter's lock is traced."""
    table = database.tables.get(NVTX)
    if table is None or "eventType" not in table.places:
        return set()
    created = f"WHERE eventType = {_DOMAIN_CREATED}"
    strings = _strings(database, created)
    rows = database.rows(NVTX, ("globalTid", "domainId", "text", "textId"), created)
    return {
        (process_of(tid), domain)
        for tid, domain, text, key in rows
        if type(tid) is int and (strings.get(key) if text is None else text) == _GIL_DOMAIN
    }


def _strings(database: Database, where: str = "") -> dict[int, str]:
    table = database.tables.get(NVTX)
    if table is None or "textId" not in table.places:
        return {}
    ids = database.db.execute(f"SELECT DISTINCT textId FROM {NVTX} {where}")
    return database.texts(sorted(key for (key,) in ids if isinstance(key, int)))
