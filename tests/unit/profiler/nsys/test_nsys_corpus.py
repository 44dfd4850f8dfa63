"""Real exports of three versions. Each figure was read from the file with plain SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stallscope.profiler.nsys.sqlite_reader import read_nsys_sqlite
from stallscope.profiler.trace.intervals import union
from stallscope.profiler.trace.timeline import CallKind, CopyKind, Trace

# file, kernels, names, busy nanoseconds (union over all devices), kernels whose launch is there
FILES = (
    ("nsysai__h100_2gpu_1s", 3_442, 41, 29_315_386, 1_632),
    ("nsysai__mock", 2, 2, 4_129, 2),
    ("nsysai__healthy_1pct", 400, 2, 400_000_000, 400),
    ("rtx4060__demo", 64, 3, 24_527_076, 64),
)


def read(corpus: Path, name: str) -> Trace:
    return read_nsys_sqlite(corpus / "nsys" / f"{name}.sqlite")


def queried(corpus: Path, name: str, query: str) -> Sequence[tuple[Any, ...]]:
    uri = (corpus / "nsys" / f"{name}.sqlite").resolve().as_uri() + "?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        return db.execute(query).fetchall()


@pytest.mark.parametrize(("name", "kernels", "names", "busy_ns", "launched"), FILES)
def test_kernels_are_those_of_the_file(
    corpus: Path, name: str, kernels: int, names: int, busy_ns: int, launched: int
) -> None:
    trace = read(corpus, name)
    rows = trace.kernels
    assert (len(rows), len(trace.names)) == (kernels, names)
    assert union(rows.start_ns, rows.end_ns).total_ns == busy_ns
    assert int(np.count_nonzero(rows.thread >= 0)) == launched
    in_file = queried(
        corpus, name, "SELECT start, end, deviceId, streamId FROM CUPTI_ACTIVITY_KIND_KERNEL"
    )
    read_back = (rows.start_ns, rows.end_ns, rows.device, rows.stream)
    assert list(zip(*(c.tolist() for c in read_back), strict=True)) == in_file


def test_two_processes_have_a_device_each(corpus: Path) -> None:
    trace = read(corpus, "nsysai__h100_2gpu_1s")
    assert [d.label for d in trace.devices] == ["cuda:0", "cuda:1"]
    assert np.bincount(trace.kernels.device).tolist() == [1_721, 1_721]
    launched = trace.kernels.thread >= 0
    pairs = zip(
        trace.kernels.device[launched].tolist(),
        trace.kernels.thread[launched].tolist(),
        strict=True,
    )
    assert set(pairs) == {(0, 0), (1, 1)}
    assert trace.threads == ("python3 111 of process 111", "python3 112 of process 112")
    assert len(trace.operators) == 16_782
    assert len(trace.marks) == 0
    assert trace.texts[trace.operators.text[0]] == "aten::view"
    assert trace.operators.payload[0] == 314_290
    assert trace.window_ns == (0, 295_658_072_752)
    assert trace.findings == ()


def test_copies_are_those_of_the_file(corpus: Path) -> None:
    copies = read(corpus, "nsysai__h100_2gpu_1s").copies
    kinds = np.bincount(copies.kind, minlength=6)
    assert kinds[CopyKind.HOST_TO_DEVICE] == 450
    assert kinds[CopyKind.DEVICE_TO_HOST] == 4
    assert kinds[CopyKind.WITHIN_DEVICE] == 450
    assert kinds[CopyKind.MEMSET] == 22
    to_device = copies.kind == CopyKind.HOST_TO_DEVICE
    assert np.bincount(copies.pageable[to_device]).tolist() == [446, 4]


def test_a_small_device_is_described(corpus: Path) -> None:
    trace = read(corpus, "nsysai__mock")
    assert trace.devices[0].product == "NVIDIA GeForce RTX 3080"
    assert trace.devices[0].facts == {
        "memory_bytes": 10_736_893_952,
        "bandwidth_bytes_per_s": 760_080_000_000,
        "sm_count": 68,
    }
    assert trace.window_ns == (0, 1_871_570_402)
    assert trace.unix_ns == 1_776_781_226_557_295_056
    assert trace.tool == "NVIDIA Nsight Systems 2026.1.1.204"


def test_ranges_and_calls_of_2024(corpus: Path) -> None:
    trace = read(corpus, "rtx4060__demo")
    assert len(trace.marks) == 271
    assert trace.texts[trace.marks.text[0]] == "weight_streaming_demo"
    assert np.bincount(trace.calls.kind, minlength=7)[CallKind.SYNC] == 40
    # Its DIAGNOSTIC_EVENT: "Profiling has started." at 0, "… has stopped." at 2676980907.
    assert trace.window_ns == (0, 2_676_980_907)
    assert trace.findings == ()
