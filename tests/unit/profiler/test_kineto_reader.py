"""A Kineto trace in columns: every value of hand-made files, and refusals in one line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from stallscope.errors import InputError
from stallscope.profiler.kineto.reader import read_kineto
from stallscope.profiler.trace.timeline import CallKind, CopyKind, TracedDevice

KERNEL = "void at::native::add_kernel<float, 4>(int, float*)"


def event(cat: str, name: str, ts: float, dur: float, **more: Any) -> dict[str, Any]:
    args = more.pop("args", {})
    host = {"pid": 10, "tid": 11}
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "args": args} | host | more


def on_device(cat: str, name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    return event(cat, name, ts, dur, pid=0, tid=7, args={"device": 0, "stream": 7} | args)


EVENTS = [
    event("user_annotation", "ProfilerStep#3", 100.0, 90.5),
    event("cpu_op", "aten::add", 101.125, 20.25, tid=12),
    event("cuda_runtime", "cudaLaunchKernel", 102.5, 3.0, args={"correlation": 5}),
    event("cuda_driver", "cuLaunchKernelEx", 103.0, 1.0, args={"correlation": 5}),
    event("cuda_runtime", "cudaMemcpyAsync", 110.0, 4.0, tid=12, args={"correlation": 6}),
    event("cuda_runtime", "cudaGraphLaunch", 120.0, 5.0, args={"correlation": 7}),
    event("cuda_runtime", "cudaDeviceSynchronize", 130.0, 50.0, args={"correlation": 8}),
    on_device("kernel", KERNEL, 140.001, 2.002, correlation=5),
    on_device("kernel", "gemm", 150.0, 7.0, correlation=7, **{"graph id": 4, "graph node id": 9}),
    on_device("kernel", "gemm", 158.0, 7.0, correlation=7, **{"graph node id": (6 << 32) + 1}),
    on_device("kernel", "late", 170.0, 1.0, correlation=99),
    on_device("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 141, 1.5, correlation=6, bytes=64),
    on_device("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 145, 1.0, correlation=6, bytes=8),
    on_device("gpu_memset", "Memset (Device)", 147, 1.0, bytes=256),
    on_device("gpu_user_annotation", "ProfilerStep#3", 140.0, 20.0),
    event("python_function", "model.py(3): forward", 100.0, 80.0),
    event("overhead", "Activity Buffer Request", 112.0, 3.5),
    event("overhead", "Instrumentation", 114.0, 3.0),
    event("Trace", "PyTorch Profiler (0)", 99.0, 101.0, pid="Spans", tid="PyTorch Profiler"),
    {"ph": "s", "id": 5, "cat": "ac2g", "name": "ac2g", "ts": 102.5, "pid": 10, "tid": 11},
    {"ph": "M", "name": "thread_name", "pid": 10, "tid": 11, "args": {"name": "thread 11 (vllm) "}},
]
HEADER = {
    "deviceProperties": [
        {"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 1000, "numSms": 132},
        {"id": 1, "name": "NVIDIA H100", "totalGlobalMem": 1000, "numSms": 132},
    ],
    "distributedInfo": {"rank": 3, "world_size": 8},
    "cuda_runtime_version": 12090,
    "cupti_version": 28,
    "record_shapes": 1,
    "baseTimeNanoseconds": 1_700_000_000_000_000_000,
}


def write(folder: Path, events: list[dict[str, Any]], header: dict[str, Any] | None = None) -> Path:
    path = folder / "trace"
    path.write_text(json.dumps({**(header or {}), "traceEvents": events}))
    return path


def test_every_column_of_a_cuda_trace(tmp_path: Path) -> None:
    trace = read_kineto(write(tmp_path, EVENTS, HEADER))
    assert (trace.kind, trace.tool) == ("kineto", "PyTorch profiler (CUDA 12.9, CUPTI 28)")
    device = TracedDevice("cuda:0", "NVIDIA H100", {"memory_bytes": 1000.0, "sm_count": 132.0})
    assert trace.devices == (device,)
    assert trace.threads == ("thread 11 (vllm)", "thread 12")
    assert trace.names == ("at::native::add_kernel<float, 4>", "gemm", "late")
    kernels = trace.kernels
    assert kernels.start_ns.tolist() == [140_001, 150_000, 158_000, 170_000]
    assert kernels.end_ns.tolist() == [142_003, 157_000, 165_000, 171_000]
    assert kernels.device.tolist() == [0, 0, 0, 0]
    assert kernels.stream.tolist() == [7, 7, 7, 7]
    assert [trace.names[i] for i in kernels.name] == [*trace.names[:2], "gemm", "late"]
    # The outer of two calls with one id; both kernels of the graph; one launched before the trace.
    assert kernels.launch_ns.tolist() == [102_500, 120_000, 120_000, -1]
    assert kernels.thread.tolist() == [0, 0, 0, -1]
    assert kernels.graph.tolist() == [-1, 4, 6, -1]
    copies = trace.copies
    assert copies.kind.tolist() == [
        CopyKind.HOST_TO_DEVICE,
        CopyKind.DEVICE_TO_HOST,
        CopyKind.MEMSET,
    ]
    assert copies.pageable.tolist() == [1, 0, 255]
    assert copies.bytes.tolist() == [64, 8, 256]
    assert copies.start_ns.tolist() == [141_000, 145_000, 147_000]
    assert copies.end_ns.tolist() == [142_500, 146_000, 148_000]
    assert copies.launch_ns.tolist() == [110_000, 110_000, -1]
    assert copies.thread.tolist() == [1, 1, -1]
    assert (copies.device.tolist(), copies.stream.tolist()) == ([0, 0, 0], [7, 7, 7])


def test_every_column_of_its_host(tmp_path: Path) -> None:
    trace = read_kineto(write(tmp_path, EVENTS, HEADER))
    found = sorted(
        zip(
            trace.calls.start_ns.tolist(),
            trace.calls.end_ns.tolist(),
            trace.calls.thread.tolist(),
            trace.calls.kind.tolist(),
            strict=True,
        )
    )
    assert found == [
        (102_500, 105_500, 0, CallKind.LAUNCH),
        (103_000, 104_000, 0, CallKind.LAUNCH),
        (110_000, 114_000, 1, CallKind.COPY),
        (120_000, 125_000, 0, CallKind.GRAPH_LAUNCH),
        (130_000, 180_000, 0, CallKind.SYNC),
    ]
    marks, operators = trace.marks, trace.operators
    assert [trace.texts[i] for i in marks.text] == ["ProfilerStep#3"]
    assert (marks.start_ns.tolist(), marks.end_ns.tolist()) == ([100_000], [190_500])
    assert (marks.thread.tolist(), marks.payload.tolist()) == ([0], [-1])
    assert [trace.texts[i] for i in operators.text] == ["aten::add"]
    assert (operators.start_ns.tolist(), operators.end_ns.tolist()) == ([101_125], [121_375])
    assert operators.thread.tolist() == [1]
    assert len(trace.waits) == 0
    assert trace.rank == 3
    assert trace.window_ns == (99_000, 200_000)
    assert trace.unix_ns == 1_700_000_000_000_000_000
    assert trace.traces_kernels
    assert trace.findings == ()
    assert trace.facts == {
        "record_shapes": True,
        "with_stack": True,
        "python_calls": 1,
        "world_size": 8,
        "visible_devices": 2,
        "events": 19,  # with a length
        "profiler_overhead_ns": 5_000,  # 112 to 117 µs: the two overlap
        "resolution_ns": 1,
    }


@pytest.mark.parametrize("is_list", [True, False])
def test_packed_and_plain_text_are_the_same_trace(tmp_path: Path, is_list: bool) -> None:
    text = json.dumps(EVENTS if is_list else {"traceEvents": EVENTS}).encode()
    (tmp_path / "plain.bin").write_bytes(text)
    # Two members, as `cat a.gz b.gz` makes.
    (tmp_path / "packed.bin").write_bytes(gzip.compress(text[:500]) + gzip.compress(text[500:]))
    plain, packed = (read_kineto(tmp_path / f"{name}.bin") for name in ("plain", "packed"))
    for table in ("kernels", "copies", "calls", "marks", "operators"):
        mine, theirs = getattr(plain, table), getattr(packed, table)
        for column in mine.__dataclass_fields__:
            assert getattr(mine, column).tolist() == getattr(theirs, column).tolist()
    assert packed.findings == ()


def test_a_rocm_trace_joins_graphs_without_ids_and_its_only_device(tmp_path: Path) -> None:
    events = [
        event("cuda_runtime", "hipGraphLaunch", 10, 5, args={"correlation": 3, "bytes": "64"}),
        event("cuda_runtime", "hipExtModuleLaunchKernel", 16, 2, args={"correlation": 4}),
        on_device("kernel", "Cijk_Alik.kd", 20, 5, device=9, stream=3, correlation=3),
        on_device("kernel", "rms", 26, 5, device=9, stream=3, correlation=3),
        on_device("kernel", "rms", 32, 5, device=9, stream=3, correlation=4),
        on_device("gpu_memcpy", "Memcpy DtoH (Device -> Host)", 40, 1, device=9, kind="DtoH"),
    ]
    header = {"deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X"}]}
    trace = read_kineto(write(tmp_path, events, header | {"hip_runtime_version": 70253211}))
    assert trace.tool == "PyTorch profiler (HIP 7.2)"
    assert trace.devices == (TracedDevice("hip:9", "AMD Instinct MI300X"),)
    assert trace.kernels.device.tolist() == [0, 0, 0]
    assert trace.kernels.launch_ns.tolist() == [10_000, 10_000, 16_000]
    assert trace.kernels.graph.tolist() == [0, 0, -1]  # a graph launched them; which is not said
    assert trace.calls.kind.tolist() == [CallKind.GRAPH_LAUNCH, CallKind.LAUNCH]
    assert trace.copies.pageable.tolist() == [255]
    assert trace.copies.bytes.tolist() == [-1]
    assert trace.facts["resolution_ns"] == 1000  # whole microseconds


def test_names_of_2021_and_ids_in_text(tmp_path: Path) -> None:
    events = [
        event("Operator", "aten::add", 1, 9, tid="456"),
        event("Runtime", "cudaMemcpyAsync", 2, 3, tid="456", args={"correlation": 334}),
        event("Runtime", "cudaLaunchKernel", 6, 2, tid="456", args={"correlation": "335"}),
        event("Memcpy", "Memcpy HtoD (Pageable -> Device)", 12, 2, pid=0, tid="stream 7",
              args={"correlation": 334}),
        event("Kernel", "void k(int)", 15, 2, pid=0, tid="stream 7", args={"correlation": 335}),
        event("Memset", "Memset (Device)", 18, 2, pid=0, tid="stream 7"),
    ]  # fmt: skip
    trace = read_kineto(write(tmp_path, events))
    assert trace.names == ("k",)
    assert trace.kernels.stream.tolist() == [7]
    assert trace.kernels.launch_ns.tolist() == [6_000]
    assert trace.copies.launch_ns.tolist() == [2_000, -1]
    assert trace.copies.kind.tolist() == [CopyKind.HOST_TO_DEVICE, CopyKind.MEMSET]
    assert len(trace.operators) == 1
    assert trace.threads == ("thread 456",)
    assert trace.devices == (TracedDevice("cuda:0"),)


@pytest.mark.parametrize(
    ("us", "ns"),
    [
        (4909914216204.635, 4909914216204635),
        (4909914216205.001, 4909914216205001),
        (1365627862757.064, 1365627862757064),
        (7999999999999.999, 7999999999999999),
    ],
)
def test_times_are_exact_where_the_float_is(tmp_path: Path, us: float, ns: int) -> None:
    """Seven hundred hours of microseconds with three decimals: a product would be one off."""
    trace = read_kineto(write(tmp_path, [event("cpu_op", "a", us, 0.001)]))
    assert trace.operators.start_ns.tolist() == [ns]
    assert trace.operators.end_ns.tolist() == [ns + 1]
    assert trace.unix_ns is None


def test_a_wall_clock_in_microseconds_says_how_fine_it_is(tmp_path: Path) -> None:
    events = [event("cpu_op", "a", 1712195495519695.8, 1.0)]
    trace = read_kineto(write(tmp_path, events))
    assert trace.operators.start_ns.tolist() == [1712195495519695750]
    assert trace.facts["resolution_ns"] == 250  # floats of 1.7e15 lie a quarter apart
    assert trace.unix_ns == 0


def test_times_that_no_clock_shows_are_left_out_and_counted(tmp_path: Path) -> None:
    events = [event("cpu_op", "a", 1e300, 1.0), event("cpu_op", "b", 2.0, 1e300)]
    events += [event("cpu_op", "c", 3.0, 5.0), event("cpu_op", "d", 4.0, 1.0)]
    trace = read_kineto(write(tmp_path, events))
    assert trace.operators.start_ns.tolist() == [3_000, 4_000]
    assert [f.what for f in trace.findings] == ["far_times"]
    assert trace.findings[0].reason == (
        "2 events were left out whose times cannot be right: more than a day from the median of "
        "the trace, or longer than a day"
    )


def test_events_without_sound_times_are_counted_with_what_that_does(tmp_path: Path) -> None:
    """Four kernels of six cannot be told, and one call besides."""
    kernels = [on_device("kernel", "k", 10.0 * i, 5.0) for i in range(6)]
    kernels[1]["dur"] = -5.0
    kernels[2]["ts"] = "x"
    kernels[3]["ts"] = None
    kernels[4]["dur"] = None
    call = event("cuda_runtime", "cudaLaunchKernel", 1.0, -1.0)
    trace = read_kineto(write(tmp_path, [*kernels, call]))
    assert trace.kernels.start_ns.tolist() == [0, 50_000]
    assert trace.kernels.end_ns.tolist() == [5_000, 55_000]
    [finding] = trace.findings
    assert finding.what == "unreadable"
    assert finding.reason == (
        "Left out as damaged: 5 of the file's events, among them 4 of 6 kernels, so that the "
        "device was busy for longer, and idle for less, than the figures say"
    )


def test_a_trace_of_which_no_time_can_be_read_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, [on_device("kernel", "k", 1.0, -1.0)])
    with pytest.raises(InputError, match="holds no event whose times can be read; record"):
        read_kineto(path)


def test_a_cpu_only_trace_traces_no_kernels(tmp_path: Path) -> None:
    trace = read_kineto(write(tmp_path, [event("cpu_op", "aten::mm", 1, 5)]))
    assert not trace.traces_kernels
    assert (len(trace.kernels), trace.devices, trace.rank) == (0, (), None)


def test_calls_without_kernels_are_a_trace_in_which_none_ran(tmp_path: Path) -> None:
    trace = read_kineto(write(tmp_path, [event("cuda_runtime", "cudaFree", 1, 5)]))
    assert trace.traces_kernels
    assert trace.calls.kind.tolist() == [CallKind.ALLOC]


@pytest.mark.parametrize("packed", [True, False])
def test_a_cut_file_gives_what_is_whole_and_says_so(tmp_path: Path, packed: bool) -> None:
    events = [event("cpu_op", f"op{i}", i * 1000.0, 500.0) for i in range(200)]
    text = json.dumps({"traceEvents": events}).encode()
    cut = text[: text.index(b'"op150"')]
    path = tmp_path / "cut"
    path.write_bytes(gzip.compress(text)[:-600] if packed else cut)
    trace = read_kineto(path)
    read = len(trace.operators)
    if not packed:
        assert read == 150
    assert 0 < read < 200
    assert trace.operators.start_ns.tolist() == [i * 1_000_000 for i in range(read)]
    [finding] = trace.findings
    assert finding.what == "cut"
    # The last event ends 0.5 ms behind its beginning.
    span_s = (read - 1) * 1e-3 + 5e-4
    assert finding.reason == (
        f"The file ends in the middle: {read} events were read, which span {span_s:.3f} s"
    )


def test_damaged_events_are_counted(tmp_path: Path) -> None:
    events = [event("cpu_op", f"op{i}", i, 1) for i in range(5)]
    path = write(tmp_path, events)
    path.write_text(path.read_text().replace('"op2"', '"op2'))
    trace = read_kineto(path)
    assert len(trace.operators) == 4
    assert [f.what for f in trace.findings] == ["unreadable"]
    assert trace.findings[0].reason == "Left out as damaged: 1 of the file's events"


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("is_list", [True, False])
def test_a_second_trace_in_the_file_is_said_not_to_be_read(
    tmp_path: Path, packed: bool, is_list: bool
) -> None:
    """As `cat a.json b.json` and `cat a.json.gz b.json.gz` make; what is behind a's events, its
    header, is a's."""
    first = {"traceEvents": EVENTS, "distributedInfo": {"rank": 3}, "note": "é}{"}
    second = {"traceEvents": EVENTS[:3], "distributedInfo": {"rank": 5}}
    texts = [json.dumps(x["traceEvents"] if is_list else x).encode() for x in (first, second)]
    path = tmp_path / "two"
    path.write_bytes(b"".join(gzip.compress(t) for t in texts) if packed else b"\n".join(texts))
    trace = read_kineto(path)
    assert len(trace.kernels) == 4
    assert trace.rank == (None if is_list else 3)
    [finding] = trace.findings
    assert finding.what == "more_behind"
    assert f"({len(texts[1]):,} bytes), which was not read" in finding.reason


def test_a_gzip_member_that_begins_at_the_end_of_a_chunk_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps({"traceEvents": EVENTS}).encode()
    parts = [gzip.compress(text[:500]), gzip.compress(text[500:])]
    monkeypatch.setattr("stallscope.profiler.kineto.chunks.CHUNK_BYTES", len(parts[0]) + 1)
    path = tmp_path / "trace.json.gz"
    path.write_bytes(b"".join(parts))
    trace = read_kineto(path)
    assert len(trace.kernels) == 4
    assert trace.findings == ()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty; export the trace again"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "is not JSON; give a trace exported by torch.profiler"),
        (gzip.compress(b"hello"), "is not JSON; give a trace exported by torch.profiler"),
        (b"\x1f\x8b\x08\x00\x00", "is not JSON; give a trace exported by torch.profiler"),
        (b'{"a": 1}', "is JSON without a list of traceEvents; give a trace exported by"),
        (b'{"schemaVersion": 1, "devi', "ends before its first event; give a trace exported by"),
        (b'{"traceEvents": []}', "holds no trace events; record and export the trace again"),
        (b"[1, 2, 3]", "holds no trace events; record and export the trace again"),
        (b'[{"a": 1}]', "holds no trace events; record and export the trace again"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_kineto(path)
    assert str(caught.value).startswith(f"{path} {says}")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing cannot be read .*; check the name"):
        read_kineto(tmp_path / "nothing")


def test_numbers_without_end_in_the_header_are_not_given(tmp_path: Path) -> None:
    device = {"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 10**400, "numSms": 132}
    header = {
        "deviceProperties": [device, {"id": [0]}],
        "distributedInfo": {"rank": 1, "world_size": 10**400},
        "baseTimeNanoseconds": 10**400,
    }
    trace = read_kineto(write(tmp_path, EVENTS, header))
    assert trace.devices == (TracedDevice("cuda:0", "NVIDIA H100", {"sm_count": 132.0}),)
    assert "world_size" not in trace.facts
    assert trace.unix_ns is None
