"""What an export says of its recording, its metrics, and what it cannot say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nsys_exports import MIDDLE, NEW, PID, Rows, strings, tid, write

from stallscope.profiler.nsys.sqlite_reader import read_nsys_sqlite
from stallscope.profiler.trace.timeline import CallKind, Trace

START = 1_700_000_000_000_000_000
KERNEL = {"start": 50, "end": 90, "globalPid": PID, "demangledName": 100, "correlationId": 1}


def read(path: Path, rows: Rows, generation: str = NEW) -> Trace:
    return read_nsys_sqlite(write(path / "x.sqlite", rows, generation))


def found(trace: Trace) -> list[str]:
    """Of what is not about these exports having no calls and texts (test_nsys_schema.py)."""
    said = [finding.what for finding in trace.findings]
    return [what for what in said if what not in ("no_calls", "no_texts")]


def test_the_window_is_on_the_events_clock(tmp_path: Path) -> None:
    """2026: start and stop are on the system's clock, on which the session began at 7,000."""
    rows: dict[str, Any] = {
        "CUPTI_ACTIVITY_KIND_KERNEL": [KERNEL],
        "ANALYSIS_DETAILS": [{"duration": 200, "startTime": 7_010, "stopTime": 7_210}],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": START, "systemClockNs": 7_000}],
    }
    trace = read(tmp_path, rows)
    assert (trace.window_ns, trace.unix_ns) == ((10, 210), START)


@pytest.mark.parametrize(("stop", "window"), [(400, (0, 360)), (120, None), (30, None)])
def test_a_window_that_kernels_leave_is_none(
    tmp_path: Path, stop: int, window: tuple[int, int] | None
) -> None:
    """2023: events count from the window's start. The kernel runs from 50 to 90."""
    details = {"duration": 9, "startTime": 40, "stopTime": stop}
    rows = {"CUPTI_ACTIVITY_KIND_KERNEL": [KERNEL], "ANALYSIS_DETAILS": [details]}
    trace = read(tmp_path, rows, MIDDLE)
    assert (trace.window_ns, trace.unix_ns) == (window, None)


@pytest.mark.parametrize(
    ("variables", "rank"),
    [
        (['HOME="/home/user"', 'SLURM_PROCID="3"', 'RANK="5"'], 5),
        (["SLURM_PROCID=3", "LOCAL_RANK=1"], 3),
        (['OMPI_COMM_WORLD_RANK="0"'], 0),
        (['RANK="first"', 'WORLD_SIZE="8"', 'MY_RANK="2"'], None),
    ],
)
@pytest.mark.parametrize("table", ["META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV"])
def test_the_rank_is_the_environments(
    tmp_path: Path, table: str, variables: list[str], rank: int | None
) -> None:
    listed = [{"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": v} for v in variables]
    together = [{"name": "DeviceEnvironment", "value": ";".join(variables).replace('"', "")}]
    trace = read(tmp_path, {table: listed if table == "META_DATA_CAPTURE" else together})
    assert trace.rank == rank


METRICS = {
    "SM Issue [Throughput %]": 1,
    "SMs Active [Throughput %]": 2,
    "Tensor Active [Throughput %]": 3,
    "DRAM Read Bandwidth [Throughput %]": 4,
    "DRAM Write Bandwidth [Throughput %]": 5,
    "GR Active [Throughput %]": 6,
    "Compute Warps in Flight [Avg]": 7,
    "DRAM Read Bandwidth [GB/s]": 8,
}


@pytest.mark.parametrize("suffix", ["", " [Throughput %]"])
def test_metrics_are_fractions_by_device(tmp_path: Path, suffix: str) -> None:
    names = {name.replace(" [Throughput %]", suffix): m for name, m in METRICS.items()}
    types = {1 << 56: 0, 1 << 56 | 1: 1}
    samples = [
        (200, 0, 1, 31), (100, 0, 1, 29), (100, 0, 2, 90), (100, 0, 3, 7), (100, 0, 6, 100),
        (100, 0, 4, 60), (100, 0, 5, 20), (200, 0, 4, 70), (300, 0, 5, 10), (300, 0, 4, 40),
        (400, 0, 4, -3), (400, 0, 5, 10), (500, 0, 2, 101), (100, 0, 7, 12), (100, 0, 8, 50),
        (100, 1, 1, 4),
    ]  # fmt: skip
    rows = {
        "GPU_METRICS": [
            {"timestamp": t, "typeId": 1 << 56 | device, "metricId": metric, "value": value}
            for t, device, metric, value in samples
        ],
        "TARGET_INFO_GPU_METRICS": [
            {"typeId": type_id, "metricId": metric, "metricName": name}
            for type_id in types
            for name, metric in names.items()
        ],
    }
    trace = read(tmp_path, rows)
    read_back = {
        (trace.devices[s.device].label, s.name): list(
            zip(s.t_ns.tolist(), s.value.tolist(), strict=True)
        )
        for s in trace.series
    }
    assert {s.unit for s in trace.series} == {"fraction"}
    assert read_back == {
        ("cuda:0", "nsys_sm_issue"): [(100, 0.29), (200, 0.31)],
        ("cuda:0", "nsys_sm_active"): [(100, 0.90)],
        ("cuda:0", "nsys_tensor_active"): [(100, 0.07)],
        ("cuda:0", "nsys_gr_active"): [(100, 1.0)],
        ("cuda:0", "nsys_dram_read"): [(100, 0.6), (200, 0.7), (300, 0.4)],
        ("cuda:0", "nsys_dram_write"): [(100, 0.2), (300, 0.1), (400, 0.1)],
        ("cuda:0", "nsys_dram_throughput"): [(100, 0.6 + 0.2), (300, 0.4 + 0.1)],
        ("cuda:1", "nsys_sm_issue"): [(100, 0.04)],
    }


def test_no_table_of_kernels(tmp_path: Path) -> None:
    trace = read(tmp_path, {"NVTX_EVENTS": [{"start": 1, "end": 9, "eventType": 59, "text": "x"}]})
    assert found(trace) == ["no_kernel_table"]
    assert not trace.traces_kernels
    assert "-t cuda" in trace.findings[0].how


def test_an_empty_table_of_kernels(tmp_path: Path) -> None:
    trace = read(tmp_path, {"CUPTI_ACTIVITY_KIND_KERNEL": []})
    assert found(trace) == ["no_kernels"]
    assert trace.traces_kernels
    assert (len(trace.kernels), trace.devices) == (0, ())


def test_domains_without_ranges_are_lost_ranges(tmp_path: Path) -> None:
    domain = {"start": 5, "eventType": 75, "text": "stallscope", "domainId": 1}
    lost = {"CUPTI_ACTIVITY_KIND_KERNEL": [KERNEL], "NVTX_EVENTS": [domain]}
    assert found(read(tmp_path, lost)) == ["nvtx_lost"]
    (tmp_path / "x.sqlite").unlink()
    there = {"start": 6, "end": 7, "eventType": 59, "text": "decode", "domainId": 1}
    kept = {"CUPTI_ACTIVITY_KIND_KERNEL": [KERNEL], "NVTX_EVENTS": [domain, there]}
    assert found(read(tmp_path, kept)) == []


def test_domains_of_libraries_promise_no_range(tmp_path: Path) -> None:
    domains = [{"start": 5, "eventType": 75, "text": text} for text in ("NCCL", "GIL Trace")]
    trace = read(tmp_path, {"CUPTI_ACTIVITY_KIND_KERNEL": [KERNEL], "NVTX_EVENTS": domains})
    assert found(trace) == []


GRAPHS = [
    {"start": 100, "end": 400, "streamId": 7, "globalPid": PID, "correlationId": 4, "graphId": 12},
    {"start": 500, "end": 800, "streamId": 7, "globalPid": PID, "correlationId": 5, "graphId": 12},
]


def test_graphs_traced_as_a_whole_keep_the_device_busy(tmp_path: Path) -> None:
    launch = {"start": 20, "end": 30, "globalTid": tid(9), "nameId": 101, "correlationId": 5}
    trace = read(
        tmp_path,
        {
            "StringIds": strings("k", "cudaGraphLaunch_v10000"),
            "CUPTI_ACTIVITY_KIND_KERNEL": [KERNEL],
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": GRAPHS,
            "CUPTI_ACTIVITY_KIND_RUNTIME": [launch],
        },
    )
    assert found(trace) == ["graphs_whole"]
    assert "(2 launches)" in trace.findings[0].reason
    assert [trace.names[i] for i in trace.kernels.name] == [
        "k",
        *["CUDA graph, traced as a whole"] * 2,
    ]
    assert trace.kernels.start_ns.tolist() == [50, 100, 500]
    assert trace.kernels.end_ns.tolist() == [90, 400, 800]
    assert trace.kernels.graph.tolist() == [-1, 12, 12]
    assert trace.kernels.launch_ns.tolist() == [-1, -1, 20]


def test_graphs_whose_nodes_are_there_are_not_counted_twice(tmp_path: Path) -> None:
    node = {**KERNEL, "graphNodeId": 12 << 32}
    trace = read(
        tmp_path,
        {"CUPTI_ACTIVITY_KIND_KERNEL": [node], "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": GRAPHS},
        MIDDLE,
    )
    assert found(trace) == []
    assert trace.kernels.graph.tolist() == [12]


def test_what_nsys_says_it_lost_is_repeated_once(tmp_path: Path) -> None:
    said = [
        (1, "Number of CUDA events collected: 1,185. None dropped."),
        (2, "Not all CUDA events might have been collected."),
        (2, "Couldn't allocate CUPTI bufer 3 times. Some CUPTI events may\n   be missing."),
        (2, "Couldn't allocate CUPTI bufer 3 times. Some CUPTI events may\n   be missing."),
        (3, "Not all NVTX events might have been collected."),
        (3, "The target application terminated."),
    ]
    events = [{"severity": severity, "text": text} for severity, text in said]
    trace = read(tmp_path, {"CUPTI_ACTIVITY_KIND_KERNEL": [KERNEL], "DIAGNOSTIC_EVENT": events})
    assert [(f.what, f.reason) for f in trace.findings if f.what in found(trace)] == [
        ("data_dropped", "nsys says that it lost data: Couldn't allocate CUPTI bufer 3 times. "
         "Some CUPTI events may be missing."),
        ("data_dropped",
         "nsys says that it lost data: Not all NVTX events might have been collected."),
    ]  # fmt: skip


def test_rows_that_end_before_they_start_are_left_out_and_said(tmp_path: Path) -> None:
    back = {**KERNEL, "start": 95, "end": 60}
    rows = {"CUPTI_ACTIVITY_KIND_KERNEL": [back, KERNEL, back]}
    trace = read(tmp_path, {**rows, "OSRT_API": [{"start": 9, "end": 8}]})
    assert found(trace) == ["damaged_rows"]
    assert trace.findings[-1].reason.startswith("3 rows were left out")
    assert "among them 2 of 3 kernels, so that the device was busy" in trace.findings[-1].reason
    assert trace.kernels.start_ns.tolist() == [50]


def test_waits_that_cupti_recorded_stand_for_calls_that_were_not_traced(tmp_path: Path) -> None:
    """Types 1, 3 and 4 make the host wait; 2 makes a stream wait."""
    waits = [
        {"start": 10 * t, "end": 10 * t + 5, "syncType": t, "globalPid": PID} for t in range(5)
    ]
    trace = read(tmp_path, {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": waits})
    assert trace.calls.start_ns.tolist() == [10, 30, 40]
    assert trace.calls.kind.tolist() == [CallKind.SYNC] * 3
    assert trace.calls.thread.tolist() == [-1] * 3


def test_times_that_cannot_be_right_are_left_out_and_counted(tmp_path: Path) -> None:
    """The window stands although a kernel of another year lies outside it."""
    year = 365 * 86_400 * 10**9
    rows = {
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            {"start": start, "end": start + 50} for start in (100, 200, 300, year)
        ],
        "NVTX_EVENTS": [{"start": 1, "end": year, "eventType": 59, "text": "a"}],
        "ANALYSIS_DETAILS": [{"startTime": 0, "stopTime": 1_000, "duration": 1_000}],
    }
    trace = read_nsys_sqlite(write(tmp_path / "x.sqlite", rows))
    assert trace.kernels.start_ns.tolist() == [100, 200, 300]
    assert len(trace.marks) == 0
    assert trace.window_ns == (0, 1_000)
    [finding] = [f for f in trace.findings if f.what == "far_times"]
    assert finding.reason.startswith("2 events were left out whose times cannot be right")
    assert "among them 1 of 4 kernels" in finding.reason
