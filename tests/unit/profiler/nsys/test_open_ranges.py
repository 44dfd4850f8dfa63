"""Ranges that a program never closed are no steps: they are left out and counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nsys_exports import strings, tid, write

from stallscope.profiler.nsys.sqlite_reader import read_nsys_sqlite
from stallscope.profiler.trace.timeline import Trace

WINDOW = {"ANALYSIS_DETAILS": [{"startTime": 5_000, "stopTime": 6_000, "duration": 1_000}]}


def mark(start: int, end: int | None, thread: int, text: str = "step") -> dict[str, Any]:
    return {"start": start, "end": end, "eventType": 59, "text": text, "globalTid": tid(thread)}


def read(tmp_path: Path, marks: list[dict[str, Any]], more: dict[str, Any] | None = None) -> Trace:
    rows = {"CUPTI_ACTIVITY_KIND_KERNEL": [{"start": 10, "end": 20, "demangledName": 100}]}
    rows |= {"StringIds": strings("k"), "NVTX_EVENTS": marks}
    return read_nsys_sqlite(write(tmp_path / "x.sqlite", rows | (more or {})))


def ends(trace: Trace) -> list[int]:
    return sorted(trace.marks.end_ns.tolist())


def said(trace: Trace) -> list[str]:
    return [f.reason for f in trace.findings if f.what in ("open_ranges", "damaged_ranges")]


def test_ranges_that_end_with_the_window_were_open(tmp_path: Path) -> None:
    """The window is 1,000 ns long and events count from its beginning."""
    operator = mark(70, 1_000, 9, "aten::mm, seq = 5, op_id = 7")
    trace = read(tmp_path, [mark(10, 50, 9), mark(60, 1_000, 9), operator], WINDOW)
    assert ends(trace) == [50]
    assert len(trace.operators) == 0
    assert said(trace) == [
        "2 ranges were still open when the trace ended, and left out: their length is not known"
    ]


def test_without_a_window_two_threads_last_ranges_end_at_once(tmp_path: Path) -> None:
    trace = read(tmp_path, [mark(10, 50, 9), mark(60, 900, 9), mark(61, 900, 9), mark(70, 900, 8)])
    assert ends(trace) == [50]
    assert said(trace)[0].startswith("3 ranges were still open")


def test_a_last_range_of_one_thread_was_closed(tmp_path: Path) -> None:
    """Two ranges on one thread may close within a tick; the last one of a trace is a step."""
    trace = read(tmp_path, [mark(10, 50, 9), mark(50, 90, 9), mark(80, 90, 9), mark(10, 50, 8)])
    assert ends(trace) == [50, 50, 90, 90]
    assert said(trace) == []


def test_ranges_without_an_end_or_that_end_before_they_start_are_counted(tmp_path: Path) -> None:
    trace = read(tmp_path, [mark(10, 50, 9), mark(60, None, 9), mark(60, 40, 9), mark(70, 30, 9)])
    assert ends(trace) == [50]
    assert said(trace)[0].startswith("1 range was still open when the trace ended")
    assert said(trace)[1] == "2 ranges were left out: ending before the start"
