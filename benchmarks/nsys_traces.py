"""Synthetic nsys SQLite exports: a decoder's steps as kernels, launch calls and NVTX ranges.

Tables and columns are those of nsys 2024.6 (schema 3.16). Rows are made inside SQLite, from one
step's pattern of kernels and a count of steps.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

LAYERS = 32
PREFILL_EVERY = 64  # steps; a prefill's kernels take twenty times as long
PID = 281476838981632 + 4096 * 16777216  # globalPid: machine and process in the upper 40 bits
TID = PID + 4097

# One layer's kernels: short name, demangled name, microseconds in decode.
LAYER = (
    ("RMSNormKernel", "void vllm::rms_norm_kernel<c10::BFloat16>(T1 *, const T1 *, float, int)", 3),
    ("nvjet_tst_64x8", "nvjet_tst_64x8_64x16_4x1_v_bz_TNT", 9),
    (
        "rotary_embedding_kernel",
        "void vllm::rotary_embedding_kernel<c10::BFloat16, (bool)1>(T1 *)",
        2,
    ),
    (
        "reshape_and_cache_kernel",
        "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(T1 *)",
        2,
    ),
    (
        "flash_fwd_splitkv_kernel",
        "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits>(P)",
        12,
    ),
    ("nvjet_tst_32x8", "nvjet_tst_32x8_64x16_4x1_v_bz_TNT", 7),
    ("fused_add_rms_norm", "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, (int)8>(T1 *)", 3),
    ("nvjet_tst_128x8", "nvjet_tst_128x8_64x12_2x1_v_bz_TNN", 21),
    (
        "act_and_mul_kernel",
        "void vllm::act_and_mul_kernel<c10::BFloat16, silu>(T1 *, const T1 *)",
        3,
    ),
    ("gemvx_kernel", "void gemv2T_kernel_val<int, __nv_bfloat16, float, (int)128>(T13)", 14),
)
TAIL = (
    ("nvjet_tst_256x8", "nvjet_tst_256x8_64x8_2x1_v_bz_TNN", 90),
    ("reduce_kernel", "void at::native::reduce_kernel<(int)512, ArgMaxOps<float>>(T3)", 8),
)
_FIRST_NAME = 300

_SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
    start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL,
    correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
    shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER,
    registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
    gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL,
    blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
    dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL,
    localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER,
    graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
    start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,
    correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL,
    callchainId INTEGER);
CREATE TABLE NVTX_EVENTS (
    start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
    category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER,
    textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL,
    uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT,
    binaryData TEXT);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE TARGET_INFO_GPU (
    vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, totalMemory INTEGER,
    memoryBandwidth INTEGER, smCount INTEGER);
CREATE TEMP TABLE pattern (i INTEGER PRIMARY KEY, name INTEGER, after INTEGER, ns INTEGER);
CREATE TEMP TABLE steps (s INTEGER PRIMARY KEY, start INTEGER, factor INTEGER);
"""


def build(path: Path, kernels: int) -> None:
    """Write an export with about `kernels` kernels (whole steps), as many launches, and ranges."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(part)) as db:
        db.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _SCHEMA)
        length_ns, size = _pattern(db)
        _steps(db, kernels // size, length_ns)
        _rows(db, size)
        db.commit()
    part.rename(path)


def _pattern(db: sqlite3.Connection) -> tuple[int, int]:
    """Fill one step's pattern; return its length in ns and its count of kernels."""
    names = LAYER + TAIL
    for k, (short, demangled, _) in enumerate(names):
        db.execute("INSERT INTO StringIds VALUES (?, ?)", (_FIRST_NAME + 2 * k, demangled))
        db.execute("INSERT INTO StringIds VALUES (?, ?)", (_FIRST_NAME + 2 * k + 1, short))
    db.execute("INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000')")
    order = list(range(len(LAYER))) * LAYERS + list(range(len(LAYER), len(names)))
    after = 0
    for i, k in enumerate(order):
        ns = names[k][2] * 1000 + (i * 7919) % 500
        db.execute("INSERT INTO pattern VALUES (?, ?, ?, ?)", (i, _FIRST_NAME + 2 * k, after, ns))
        after += ns + 800
    return after, len(order)


def _steps(db: sqlite3.Connection, count: int, length_ns: int) -> None:
    start = 3_000_000_000
    for s in range(count):
        factor = 20 if s % PREFILL_EVERY == 0 else 1
        db.execute("INSERT INTO steps VALUES (?, ?, ?)", (s, start, factor))
        start += factor * length_ns + 150_000


def _rows(db: sqlite3.Connection, size: int) -> None:
    db.execute(
        f"""INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL
        SELECT start + factor * after, start + factor * (after + ns), 0, 1, 0, 7,
            1000 + 3 * (s * {size} + i), {PID}, name, name + 1, name + 1, 1, 1, 64, 132 + i % 64, 1,
            1, 128, 1, 1, 16, 49152, 0, 250871808, s * {size} + i, 102400, NULL, 0
        FROM steps CROSS JOIN pattern ORDER BY s, i"""
    )
    db.execute(
        f"""INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME
        SELECT start + 4000 * i - 40000, start + 4000 * i - 37000, 0, {TID},
            1000 + 3 * (s * {size} + i), 1, 0, NULL
        FROM steps CROSS JOIN pattern ORDER BY s, i"""
    )
    db.execute(
        f"""INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId, int64Value)
        SELECT start - 60000, start - 40000 + 4000 * {size}, 59,
            iif(factor > 1, 'prefill', 'decode'), {TID}, 1, iif(factor > 1, 512, 32) FROM steps"""
    )
    db.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2024.6.2.225')")
    db.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.16.1')")
    db.execute(
        "INSERT INTO TARGET_INFO_GPU VALUES (1, 0, 'NVIDIA H100', 85899345920, 3352320000000, 132)"
    )
