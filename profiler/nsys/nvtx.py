"""NVTX ranges: marks that programs set, a framework's operators, and waits for Python's lock."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stallscope.errors import InputError
from stallscope.profiler.nsys.database import Database
from stallscope.profiler.nsys.texts import Texts
from stallscope.profiler.nsys.threads import Threads
from stallscope.profiler.trace.timeline import UNKNOWN, Ranges

NVTX = "NVTX_EVENTS"
# ENUM_NSYS_EVENT_TYPE: push/pop and start/end ranges, the same imported from text; a mark has no
# length and is counted alone; a domain is created or destroyed.
_RANGES = (59, 60, 70, 71)
_MARKS = (34, 65)
_DOMAIN_CREATED, _DOMAIN_DESTROYED = 75, 76
_COLUMNS = ("start", "end", "eventType", "globalTid", "domainId", "text", "textId")
_PAYLOADS = ("int64Value", "uint64Value", "int32Value", "uint32Value")
# nsys --trace=python-gil writes its ranges as NVTX, in a domain of its own.
_GIL_DOMAIN = "GIL Trace"
_GIL_WAIT = "Waiting for GIL"
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
    """What was read, and counts of what is no range: instants, domains, ranges without an end."""

    marks: Ranges
    operators: Ranges
    waits: Ranges
    instants: int
    domains: int
    unfinished: int


def read_nvtx(database: Database, threads: Threads, texts: Texts) -> Nvtx:
    """Read the ranges. An operator's payload is its op_id; a range's is its own integer.

    Raises InputError where a time is no whole number.
    """
    marks, operators, waits = _Rows(), _Rows(), _Rows()
    instants = domains = unfinished = 0
    kept: dict[str, tuple[_Rows | None, int, int | None]] = {}
    for start, end, kind, tid, in_gil, text, payload in _events(database):
        if kind not in _RANGES:
            instants += kind in _MARKS
            domains += kind in (_DOMAIN_CREATED, _DOMAIN_DESTROYED)
            continue
        if end is None or start is None:
            unfinished += 1
            continue
        if in_gil:
            rows, place, own = (waits if text == _GIL_WAIT else None), texts.place(text), None
        elif text in kept:
            rows, place, own = kept[text]
        else:
            name, own = _operator(text)
            rows, place = (marks if name is None else operators), texts.place(name or text)
            if name is None:  # an operator's text is of one range, and not worth keeping
                kept[text] = rows, place, own
        if rows is None or end < start:
            continue
        rows.start_ns.append(start)
        rows.end_ns.append(end)
        rows.thread.append(threads.place(tid))
        rows.text.append(place)
        rows.payload.append(own if own is not None else payload)
    return Nvtx(
        marks.columns(), operators.columns(), waits.columns(), instants, domains, unfinished
    )


def _operator(text: str) -> tuple[str | None, int | None]:
    """Return an operator's name and op_id where the text is an operator's."""
    if ", op_id = " not in text and ", seq = " not in text:
        return (text, None) if text.startswith("aten::") else (None, None)
    match = _OPERATOR.match(text)
    if match is None:
        return None, None
    return match["name"], None if match["id"] is None else int(match["id"])


def _events(database: Database) -> Iterator[tuple[Any, ...]]:
    """Yield start, end, type, thread, whether of the GIL's domain, text and payload."""
    if NVTX not in database.tables:
        return
    gil = _gil_domains(database)
    strings = _strings(database)
    for row in database.rows(NVTX, (*_COLUMNS, *_PAYLOADS)):
        start, end, kind, tid, domain, text, key, *payloads = row
        if not isinstance(start, int) or not isinstance(end, int | None):
            raise InputError(
                f"{database.path}: {NVTX} holds a time that is no whole number; export again"
            )
        if text is None:
            text = strings.get(key, "")
        payload = next((p for p in payloads if isinstance(p, int)), UNKNOWN)
        process = None if tid is None else tid >> 24
        yield start, end, kind, tid, (process, domain) in gil, str(text), payload


def _gil_domains(database: Database) -> set[tuple[int | None, Any]]:
    strings = _strings(database, f"WHERE eventType = {_DOMAIN_CREATED}")
    rows = database.rows(
        NVTX, ("globalTid", "domainId", "text", "textId"), f"WHERE eventType = {_DOMAIN_CREATED}"
    )
    return {
        (None if tid is None else tid >> 24, domain)
        for tid, domain, text, key in rows
        if (strings.get(key) if text is None else text) == _GIL_DOMAIN
    }


def _strings(database: Database, where: str = "") -> dict[int, str]:
    if "textId" not in database.tables[NVTX].places:
        return {}
    ids = database.db.execute(f"SELECT DISTINCT textId FROM {NVTX} {where}")
    return database.texts(sorted(key for (key,) in ids if isinstance(key, int)))
