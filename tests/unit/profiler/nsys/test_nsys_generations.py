"""Every column of an export's kernels, copies, calls and ranges, in three generations of schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nsys_exports import GENERATIONS, NEW, OLD, OTHER_PID, PID, strings, tid, write

from stallscope.profiler.nsys.sqlite_reader import read_nsys_sqlite
from stallscope.profiler.trace.timeline import CallKind, CopyKind, Trace

TEXTS = strings(
    "void vllm::rms_norm<c10::Half>(T1 *, float)",  # 100
    "rms_norm",
    "sm80_xmma_gemm_f16f16_tn",  # 102
    "cudaLaunchKernel_v7000",  # 103
    "cudaMemcpyAsync_v3020",
    "cudaGraphLaunch_v10000",  # 105
    "cudaStreamSynchronize_v3020",
    "decode",  # 107
    "poll",
    "python3",  # 109
)
GRAPH_NODE = 5 << 32 | 3  # the fourth node of graph 5


def kernel(start: int, end: int, **more: Any) -> dict[str, Any]:
    return {
        "start": start,
        "end": end,
        "deviceId": 0,
        "contextId": 1,
        "streamId": 7,
        "globalPid": PID,
        "demangledName": 100,
        "shortName": 101,
        **more,
    }


def call(start: int, end: int, name: int, correlation: int, **more: Any) -> dict[str, Any]:
    return {
        "start": start,
        "end": end,
        "globalTid": tid(9),
        "nameId": name,
        "correlationId": correlation,
        **more,
    }


def whole_export(path: Path, generation: str) -> Trace:
    gpu = {"vmId": 1, "name": "NVIDIA H100", "id": 0, "deviceId": 0}
    rows = {
        "StringIds": TEXTS,
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            kernel(1_000, 1_500, correlationId=11),
            kernel(1_400, 1_900, correlationId=12, streamId=13, demangledName=102),
            kernel(
                5_000_000_000,
                5_000_000_300,
                correlationId=70_000,
                deviceId=1,
                graphNodeId=GRAPH_NODE,
                graphId=5,
            ),
            kernel(2_000, 2_100, correlationId=11, globalPid=OTHER_PID),
            kernel(3_000, 3_100, correlationId=99),
        ],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [
            kernel(100, 300, correlationId=20, bytes=4096, copyKind=1, srcKind=0, dstKind=2),
            kernel(300, 400, correlationId=21, bytes=512, copyKind=2, srcKind=2, dstKind=1),
            kernel(400, 500, bytes=1 << 33, copyKind=8, srcDeviceId=0, dstDeviceId=1),
            kernel(500, 600, bytes=8, copyKind=10),
        ],
        "CUPTI_ACTIVITY_KIND_MEMSET": [kernel(600, 650, correlationId=22, bytes=64)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            call(-30, 20, 104, 20),
            call(900, 960, 103, 11),
            call(970, 990, 103, 12),
            call(1_800, 1_850, 103, 11, globalTid=tid(8, OTHER_PID)),
            call(1_900, 2_950, 106, 30),
            call(4_999_999_000, 4_999_999_500, 105, 70_000),
        ],
        "NVTX_EVENTS": [
            {"start": 10, "end": 2_000, "eventType": 59, "text": "prefill", "globalTid": tid(9),
             "int64Value": 512},
            {"start": 2_500, "end": 2_900, "eventType": 60, "textId": 107, "globalTid": tid(9),
             "uint64Value": 32},
            {"start": 20, "end": 30, "eventType": 59, "globalTid": tid(9),
             "text": "aten::mm, seq = 5, op_id = 77, sizes = [[2, 3], [3, 4]]"},
            {"start": 25, "eventType": 34, "text": "an instant", "globalTid": tid(9)},
            {"start": 0, "eventType": 75, "text": "GIL Trace", "globalTid": tid(9), "domainId": 3},
            {"start": 40, "end": 45, "eventType": 59, "text": "Waiting for GIL",
             "globalTid": tid(9), "domainId": 3},
            {"start": 45, "end": 60, "eventType": 59, "text": "Holding GIL", "globalTid": tid(9),
             "domainId": 3},
            {"start": 90, "eventType": 59, "text": "never ended", "globalTid": tid(9)},
        ],
        "OSRT_API": [{"start": 50, "end": 90, "globalTid": tid(8, OTHER_PID), "nameId": 108}],
        "ThreadNames": [{"nameId": 109, "globalTid": tid(9)}],
        "TARGET_INFO_CUDA_GPU" if generation == OLD else "TARGET_INFO_GPU": [
            {**gpu, "totalMemory": 80, "totalGlobalMemory": 80, "memoryBandwidth": 3_000,
             "globalMemoryBandwidth": 3_000, "smCount": 132, "numMultiprocessors": 132}
        ],
        "EXPORT_META_DATA" if generation == OLD else "META_DATA_EXPORT": [
            {"name": "EXPORT_PRODUCT_VERSION", "value": f"{generation}.3"}
        ],
    }  # fmt: skip
    return read_nsys_sqlite(write(path / "export.sqlite", rows, generation))


@pytest.fixture(params=GENERATIONS)
def generation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_kernels_have_times_names_and_launches(tmp_path: Path, generation: str) -> None:
    trace = whole_export(tmp_path, generation)
    kernels = trace.kernels
    assert kernels.start_ns.tolist() == [1_000, 1_400, 5_000_000_000, 2_000, 3_000]
    assert kernels.end_ns.tolist() == [1_500, 1_900, 5_000_000_300, 2_100, 3_100]
    assert kernels.stream.tolist() == [7, 13, 7, 7, 7]
    assert [trace.devices[i].label for i in kernels.device] == [
        "cuda:0", "cuda:0", "cuda:1", "cuda:0", "cuda:0",
    ]  # fmt: skip
    named = [trace.names[i] for i in kernels.name]
    norm = "vllm::rms_norm<c10::Half>"
    assert named == [norm, "sm80_xmma_gemm_f16f16_tn", norm, norm, norm]
    # Correlation 11 is of both processes; 99 is no call's.
    assert kernels.launch_ns.tolist() == [900, 970, 4_999_999_000, 1_800, -1]
    launching = ["" if i < 0 else trace.threads[i] for i in kernels.thread]
    one, other = "python3 9 of process 42", "thread 8 of process 43"
    assert launching == [one, one, one, other, ""]
    graph = -1 if generation == OLD else 5
    assert kernels.graph.tolist() == [-1, -1, graph, -1, -1]


def test_copies_have_ways_sizes_and_the_hosts_kind_of_memory(
    tmp_path: Path, generation: str
) -> None:
    copies = whole_export(tmp_path, generation).copies
    assert copies.start_ns.tolist() == [100, 300, 400, 500, 600]
    assert copies.end_ns.tolist() == [300, 400, 500, 600, 650]
    assert copies.bytes.tolist() == [4096, 512, 1 << 33, 8, 64]
    assert [CopyKind(k) for k in copies.kind] == [
        CopyKind.HOST_TO_DEVICE,
        CopyKind.DEVICE_TO_HOST,
        CopyKind.BETWEEN_DEVICES,
        CopyKind.BETWEEN_DEVICES,
        CopyKind.MEMSET,
    ]
    assert copies.pageable.tolist() == [1, 0, 255, 255, 255]
    assert copies.device.tolist() == [0] * 5
    assert copies.stream.tolist() == [7] * 5
    assert copies.launch_ns.tolist() == [-30, -1, -1, -1, -1]
    assert copies.thread.tolist() == [0, -1, -1, -1, -1]


def test_calls_have_kinds_and_threads(tmp_path: Path, generation: str) -> None:
    trace = whole_export(tmp_path, generation)
    calls = trace.calls
    assert calls.start_ns.tolist() == [-30, 900, 970, 1_800, 1_900, 4_999_999_000]
    assert calls.end_ns.tolist() == [20, 960, 990, 1_850, 2_950, 4_999_999_500]
    assert [CallKind(k) for k in calls.kind] == [
        CallKind.COPY,
        CallKind.LAUNCH,
        CallKind.LAUNCH,
        CallKind.LAUNCH,
        CallKind.SYNC,
        CallKind.GRAPH_LAUNCH,
    ]
    assert calls.thread.tolist() == [0, 0, 0, 1, 0, 0]


def test_ranges_are_marks_operators_or_waits(tmp_path: Path, generation: str) -> None:
    trace = whole_export(tmp_path, generation)
    assert rows(trace, "marks") == [(10, 2_000, 0, "prefill", 512), (2_500, 2_900, 0, "decode", 32)]
    assert rows(trace, "operators") == [(20, 30, 0, "aten::mm", 77)]
    assert rows(trace, "waits") == [(40, 45, 0, "Waiting for GIL", -1), (50, 90, 1, "poll", -1)]
    assert trace.facts["nvtx_instants"] == 1


def rows(trace: Trace, of: str) -> list[tuple[int, int, int, str, int]]:
    found = getattr(trace, of)
    texts = [trace.texts[i] for i in found.text]
    numbers = (c.tolist() for c in (found.start_ns, found.end_ns, found.thread))
    return list(zip(*numbers, texts, found.payload.tolist(), strict=True))


def test_the_device_is_described(tmp_path: Path, generation: str) -> None:
    trace = whole_export(tmp_path, generation)
    described, unknown = trace.devices
    assert (described.label, described.product) == ("cuda:0", "NVIDIA H100")
    assert described.facts == {
        "memory_bytes": 80.0, "bandwidth_bytes_per_s": 3_000.0, "sm_count": 132.0,
    }  # fmt: skip
    assert (unknown.label, unknown.product, unknown.facts) == ("cuda:1", None, {})
    assert trace.tool == f"NVIDIA Nsight Systems {generation}.3"
    assert trace.kind == "nsys"
    assert trace.traces_kernels
    assert [finding.what for finding in trace.findings] == ["open_ranges"]
    assert trace.findings[0].reason.startswith("1 range was still open when the trace ended")


def test_processes_number_their_devices_themselves(tmp_path: Path) -> None:
    """Both processes see one device as 0; the machine's are 4 and 2."""
    rows = {
        "StringIds": TEXTS,
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            kernel(0, 10, globalPid=PID),
            kernel(0, 10, globalPid=OTHER_PID),
            kernel(20, 30, globalPid=PID),
        ],
        "TARGET_INFO_CUDA_DEVICE": [
            {"gpuId": 4, "cudaId": 0, "pid": 42},
            {"gpuId": 2, "cudaId": 0, "pid": 43},
        ],
    }
    trace = read_nsys_sqlite(write(tmp_path / "x.sqlite", rows, NEW))
    assert [trace.devices[i].label for i in trace.kernels.device] == ["cuda:4", "cuda:2", "cuda:4"]


def test_memory_without_end_is_not_told(tmp_path: Path) -> None:
    gpu = {"id": 0, "name": "NVIDIA H100", "totalMemory": float("inf"), "smCount": -1}
    rows = {"CUPTI_ACTIVITY_KIND_KERNEL": [kernel(1, 2)], "TARGET_INFO_GPU": [gpu]}
    (device,) = read_nsys_sqlite(write(tmp_path / "x.sqlite", rows, NEW)).devices
    assert (device.product, device.facts) == ("NVIDIA H100", {})
