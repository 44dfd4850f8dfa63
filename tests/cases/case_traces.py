"""Traces."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from case_form import Case, Version

US = 1_000


def database(path: Path, tables: dict[str, list[dict[str, Any]]]) -> str:
    """Write an export of nsys with the columns that its rows have."""
    with sqlite3.connect(path) as db:
        for name, rows in tables.items():
            columns = list(dict.fromkeys(key for row in rows for key in row))
            kinds = ", ".join(
                f"{c} {'TEXT' if isinstance(rows[0].get(c), str) else 'INTEGER'}" for c in columns
            )
            db.execute(f"CREATE TABLE {name} ({kinds})")
            marks = ", ".join("?" * len(columns))
            values = [[row.get(c) for c in columns] for row in rows]
            db.executemany(f"INSERT INTO {name} VALUES ({marks})", values)
    db.close()
    return str(path)


def process(number: int) -> int:
    """Return nsys's globalPid."""
    return 0x0001_0000_0000_0000 + (number << 24)


def kernel(
    start: float, end: float, name: int, *, pid: int = 42, device: int = 0, launch: int = 0
) -> dict[str, Any]:
    """Return one kernel's row; times in microseconds."""
    return {
        "start": round(start * US), "end": round(end * US), "deviceId": device, "contextId": 1,
        "streamId": 7, "correlationId": launch, "globalPid": process(pid), "demangledName": name,
        "shortName": name, "gridX": 1, "gridY": 1, "gridZ": 1, "registersPerThread": 32,
    }  # fmt: skip


def strings(*texts: str) -> list[dict[str, Any]]:
    return [{"id": 100 + i, "value": text} for i, text in enumerate(texts)]


def call(start: float, end: float, name: int, launch: int, pid: int = 42) -> dict[str, Any]:
    return {
        "start": round(start * US), "end": round(end * US), "eventClass": 0,
        "globalTid": process(pid) + pid, "correlationId": launch, "nameId": name, "returnValue": 0,
    }  # fmt: skip


def near_measured_bandwidth(folder: Path, version: Version) -> list[str]:
    """Tokens of 55.5 ms, 45.3 of them in kernels that read weights, 10.2 to encode."""
    x = version.scale
    kernels, calls = [], []
    for token in range(60):
        at = token * 55_500 * x
        calls.append(call(at, at + 10_150 * x, 103, 9000 + token))
        for i in range(151):
            start = at + 10_200 * x + i * 300 * x
            name = 101 if version.has_distractor and i % 30 == 0 else 100
            launch = token * 200 + i + 1
            calls.append(
                call(at + (10_160 + 0.2 * i) * x, at + (10_160 + 0.2 * i + 0.1) * x, 102, launch)
            )
            kernels.append(kernel(start, start + 299 * x, name, launch=launch))
    return [
        database(folder / "report.sqlite", {
            "StringIds": strings("mul_mat_vec_q_moe", "rms_norm_f32", "cudaLaunchKernel_v7000",
                                 "cudaStreamEndCapture_v10000"),
            "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
            "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
        }),
        "--gpu", "gb10",
    ]  # fmt: skip


def only_rank_0(folder: Path, version: Version) -> list[str]:
    """Eight ranks, and kernels of one process alone."""
    x = version.scale
    kernels = []
    for step in range(200):
        for i in range(20):
            start = step * 9_000 * x + i * 300 * x
            kernels.append(kernel(start, start + 290 * x, 100 + i % 3, launch=step * 20 + i + 1))
    calls = [
        call(k["start"] / US - 20, k["start"] / US - 15, 103, k["correlationId"]) for k in kernels
    ]
    gpus = [{"id": i, "name": "NVIDIA A100-SXM4-80GB", "totalMemory": 80 << 30} for i in range(8)]
    tables = {
        "StringIds": strings("ampere_bf16_s16816gemm_bf16", "fused_moe_kernel",
                             "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "cudaLaunchKernel_v7000"),
        "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
    }  # fmt: skip
    if version.has_distractor:
        tables["TARGET_INFO_GPU"] = gpus
    return [database(folder / "report.sqlite", tables), "--gpus", "8", "--gpu", "a100-sxm4-80gb"]


def whole_graphs(folder: Path, version: Version) -> list[str]:
    """40 decode steps, each one graph launch; its nodes are not there."""
    x = version.scale
    graphs, kernels, calls = [], [], []
    for step in range(40):
        at = step * 12_400 * x
        launch = 500 + step
        calls.append(call(at, at + 90 * x, 101, launch))
        graphs.append({
            "start": round((at + 100 * x) * US), "end": round((at + 12_100 * x) * US),
            "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": launch,
            "globalPid": process(42), "graphId": 3, "graphExecId": 4,
        })  # fmt: skip
        if version.has_distractor:
            kernels.append(kernel(at + 12_110 * x, at + 12_350 * x, 100, launch=900 + step))
    tables = {
        "StringIds": strings("sample_kernel", "cudaGraphLaunch_v10000"),
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": graphs,
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
    }
    if kernels:
        tables["CUPTI_ACTIVITY_KIND_KERNEL"] = kernels
    return [database(folder / "report.sqlite", tables)]


TRACES = (
    Case(
        "near-measured-bandwidth",
        ("bandwidth",),
        near_measured_bandwidth,
        says=(r"1[78] %|82 %|81 %",),
        never=(r"poor",),
    ),
    Case(
        "only-rank-0",
        ("profiler",),
        only_rank_0,
        says=(r"8 ", r"spawn|trace-fork-before-exec"),
        never=(r"idle",),
    ),
    Case(
        "whole-graphs",
        ("profiler", "undetermined"),
        whole_graphs,
        says=(r"cuda-graph-trace=node",),
        never=(r"[Ll]aunch overhead",),
    ),
)
