"""aiconfigurator's kernels of A100 and H100 by shape class: what every tenth row fits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from table_rows import kernel_table

from stallscope.analyzers.cost.achievable import DEFAULT
from stallscope.profiler.devices import load_device

_DEVICES = {"a100": "a100-sxm4-80gb", "h100": "h100-sxm"}
_KINDS = ("gemm", "generation_attention", "context_attention")
_FRACTIONS = np.arange(0.30, 1.001, 0.05)
_STARTS = np.arange(2, 21, 2) * 1e-6
Table = dict[str, Any]


def work_of(kind: str, t: Any) -> tuple[Any, Any, Any]:
    """Return bytes, FLOPs and the shape class of each row, two bytes an element."""
    if kind == "gemm":
        flops, moved = 2.0 * t.m * t.n * t.k, 2.0 * (t.n * t.k + t.m * (t.n + t.k))
        size = np.where(2.0 * t.n * t.k > 1e7, "10 MB or more", "less than 10 MB")
        rows = np.select([t.m < 16, t.m < 256], ["1-15 rows", "16-255 rows"], "256 rows or more")
        return moved, flops, [f"{a}, {b}" for a, b in zip(rows, size, strict=True)]
    wide, narrow = 2.0 * 128 * t.num_heads, 2.0 * 128 * t.num_key_value_heads
    if kind == "generation_attention":
        context = t.step + 1
        moved = t.batch_size * (2 * narrow * context + 2 * wide)
        size = np.select([moved < 1e6, moved < 1e8], ["under 1 MB", "1-100 MB"], "100 MB or more")
        return moved, 2.0 * wide * t.batch_size * context, list(size)
    pairs = t.batch_size * t.isl * (t.isl + 1) / 2
    flops, moved = 2.0 * wide * pairs, t.batch_size * t.isl * (2 * wide + 2 * narrow)
    size = np.select([flops < 1e9, flops < 1e11], ["under 1 GFLOP", "1-100 GFLOP"], "100 GFLOP on")
    return moved, flops, list(size)


def tables(folder: Path, kind: str) -> Iterator[tuple[str, Table]]:
    """Yield each device's table: seconds at the datasheet's rates, measured, shape class."""
    for device, name in _DEVICES.items():
        spec = load_device(name)
        frame = kernel_table(folder, device, kind)
        moved, flops, shapes = work_of(kind, frame)
        yield (
            name,
            {
                "memory": np.array(moved / spec.memory_bytes_per_s),
                "compute": np.array(flops / spec.peak_flops["bf16"]),
                "seconds": np.array(frame.latency) * 1e-3,
                "shape": np.array(shapes),
            },
        )


def expected(t: Table, memory: float, compute: float, start_s: float) -> Any:
    """Return the expected seconds of each row."""
    return start_s + np.hypot(t["memory"] / memory, t["compute"] / compute)


def fitted(t: Table) -> tuple[float, float, float]:
    """Return the fractions and the start that miss least, by the mean, over a grid."""
    return min(
        product(_FRACTIONS, _FRACTIONS, _STARTS),
        key=lambda v: float(np.mean(np.abs(expected(t, *v) / t["seconds"] - 1))),
    )


def print_kernels(folder: Path) -> None:
    """Print what every tenth row gives, and the errors of the others by shape class."""
    reach = {
        "gemm": (DEFAULT.product_memory, DEFAULT.product_compute, DEFAULT.product_start_s),
        **dict.fromkeys(
            _KINDS[1:],
            (DEFAULT.attention_memory, DEFAULT.attention_compute, DEFAULT.attention_start_s),
        ),
    }
    for kind in _KINDS:
        each = dict(tables(folder, kind))
        large = {
            name: {key: values[_is_large(kind, t)][::10] for key, values in t.items()}
            for name, t in each.items()
        }
        pooled = {
            key: np.concatenate([t[key] for t in large.values()])
            for key in ("memory", "compute", "seconds")
        }
        memory, compute, start_s = fitted(pooled)
        print(f"\n{kind}: every tenth row gives {memory:.2f} of memory,", end="")
        print(f" {compute:.2f} of arithmetic, {start_s * 1e6:.0f} µs; used {reach[kind]}")
        for name, t in each.items():
            rest = np.arange(len(t["seconds"])) % 10 != 0
            miss = expected(t, *reach[kind]) / t["seconds"] - 1
            for shape in sorted(set(t["shape"])):
                chosen = miss[rest & (t["shape"] == shape)]
                print(
                    f"  {name:15} {shape:32} {len(chosen):5} rows  {np.mean(np.abs(chosen)):6.1%}",
                    end="",
                )
                print(f"  nine in ten within {np.quantile(np.abs(chosen), 0.9):.0%}")


def _is_large(kind: str, t: Table) -> Any:
    small = ("less than 10 MB", "under 1 MB", "under 1 GFLOP")
    return np.array([not shape.endswith(small) for shape in t["shape"]])
