"""A column or table that an export lacks is named, with what cannot be told without it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from nsys_exports import PID, strings, tid, write

from stallscope.profiler.nsys.sqlite_reader import read_nsys_sqlite
from stallscope.profiler.trace.timeline import Trace
from stallscope.profiler.trace.to_capture import capture_of

KERNEL, RUNTIME = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
ROWS: dict[str, list[dict[str, Any]]] = {
    "StringIds": strings("k", "cudaLaunchKernel", "step"),
    KERNEL: [{"start": 10, "end": 20, "globalPid": PID, "correlationId": 5, "demangledName": 100}],
    RUNTIME: [{"start": 1, "end": 2, "globalTid": tid(9), "correlationId": 5, "nameId": 101}],
    "CUPTI_ACTIVITY_KIND_MEMCPY": [{"start": 30, "end": 40, "bytes": 8, "copyKind": 1}],
    "CUPTI_ACTIVITY_KIND_MEMSET": [{"start": 40, "end": 41, "bytes": 8}],
    "NVTX_EVENTS": [{"start": 1, "end": 50, "eventType": 59, "textId": 102, "globalTid": tid(9)}],
    "OSRT_API": [{"start": 1, "end": 5, "globalTid": tid(9), "nameId": 101}],
    "GPU_METRICS": [{"timestamp": 1, "value": 5}],
}


def changed(path: Path, *statements: str) -> Trace:
    """Read an export that was changed by these statements."""
    write(path / "x.sqlite", ROWS)
    with closing(sqlite3.connect(path / "x.sqlite")) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()
    return read_nsys_sqlite(path / "x.sqlite")


def test_of_a_whole_export_nothing_is_said(tmp_path: Path) -> None:
    trace = changed(tmp_path)
    assert trace.findings == ()
    assert trace.kernels.launch_ns.tolist() == [1]


@pytest.mark.parametrize(
    ("table", "columns", "what", "unknown"),
    [
        (KERNEL, ["end"], "no_kernels", "when its kernels ran is not known"),
        (KERNEL, ["start", "end"], "no_kernels", "when its kernels ran is not known"),
        (KERNEL, ["correlationId"], "changed_schema", "cannot be told from time in which work"),
        (KERNEL, ["deviceId"], "changed_schema", "taken to be of one device"),
        (RUNTIME, ["start"], "changed_schema", "which call launched a kernel is not known"),
        (RUNTIME, ["correlationId"], "changed_schema", "which call launched a kernel is not known"),
        (RUNTIME, ["nameId"], "changed_schema", "what the host's calls asked for is not known"),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", ["end"], "changed_schema", "when its copies ran"),
        ("CUPTI_ACTIVITY_KIND_MEMSET", ["end"], "changed_schema", "when its memsets ran"),
        ("NVTX_EVENTS", ["start", "eventType"], "changed_schema", "ranges are not read"),
        ("NVTX_EVENTS", ["end"], "changed_schema", "ranges are not read"),
        ("NVTX_EVENTS", ["globalTid"], "changed_schema", "which thread a range is of"),
        ("OSRT_API", ["end"], "changed_schema", "waits in system calls are not read"),
        ("GPU_METRICS", ["value"], "changed_schema", "the device's counters are not read"),
    ],
)
def test_a_renamed_column_is_named(
    tmp_path: Path, table: str, columns: list[str], what: str, unknown: str
) -> None:
    renamed = [f"ALTER TABLE {table} RENAME COLUMN {c} TO {c}_v2" for c in columns]
    trace = changed(tmp_path, *renamed)
    [finding] = trace.findings
    assert finding.what == what
    noun = "column" if len(columns) == 1 else "columns"
    assert f"The table {table} lacks the {noun} {', '.join(columns)}: " in finding.reason
    assert unknown in finding.reason
    assert "Export the report again" in finding.how


@pytest.mark.parametrize(
    ("table", "columns", "unknown"),
    [
        (KERNEL, ("demangledName", "shortName", "mangledName"), "the names of kernels"),
        ("NVTX_EVENTS", ("text", "textId"), "the names of ranges"),
    ],
)
def test_of_columns_that_stand_for_one_another_one_is_enough(
    tmp_path: Path, table: str, columns: tuple[str, ...], unknown: str
) -> None:
    renamed = [f"ALTER TABLE {table} RENAME COLUMN {c} TO {c}_v2" for c in columns]
    (tmp_path / "one").mkdir()
    (tmp_path / "all").mkdir()
    assert changed(tmp_path / "one", *renamed[1:]).findings == ()
    [finding] = changed(tmp_path / "all", *renamed).findings
    assert f"lacks the column {' or '.join(columns)}: {unknown}" in finding.reason


@pytest.mark.parametrize(
    "statement",
    ["DROP TABLE StringIds", "ALTER TABLE StringIds RENAME COLUMN value TO text"],
)
def test_without_texts_names_are_not_known(tmp_path: Path, statement: str) -> None:
    trace = changed(tmp_path, statement)
    assert [f.what for f in trace.findings] == ["no_texts"]
    assert "(StringIds): the names of kernels are not known" in trace.findings[0].reason
    assert trace.kernels.start_ns.tolist() == [10]


@pytest.mark.parametrize("statement", [f"DROP TABLE {RUNTIME}", f"DELETE FROM {RUNTIME}"])
def test_without_calls_launches_are_not_known(tmp_path: Path, statement: str) -> None:
    trace = changed(tmp_path, statement)
    assert [f.what for f in trace.findings] == ["no_calls"]
    assert "cannot be told from time in which work was queued" in trace.findings[0].reason


def test_an_empty_table_may_lack_what_it_likes(tmp_path: Path) -> None:
    trace = changed(
        tmp_path,
        "DELETE FROM NVTX_EVENTS",
        "ALTER TABLE NVTX_EVENTS RENAME COLUMN start TO begin",
    )
    assert trace.findings == ()


def test_the_report_does_not_say_that_nothing_ran(tmp_path: Path) -> None:
    trace = changed(tmp_path, f"ALTER TABLE {KERNEL} RENAME COLUMN end TO endNs")
    [sentence] = [e.data["sentence"] for e in capture_of([trace]).events if e.kind == "check"]
    assert f"The table {KERNEL} lacks the column end: when its kernels ran" in sentence
    assert "empty" not in sentence


def test_kernels_that_are_all_damaged_are_not_none(tmp_path: Path) -> None:
    trace = changed(tmp_path, f"UPDATE {KERNEL} SET end = 1")
    assert [f.what for f in trace.findings] == ["no_kernels", "damaged_rows"]
    assert trace.findings[0].reason == "No row of the table of kernels can be used (1 read)"
