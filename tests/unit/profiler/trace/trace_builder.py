"""Small traces by hand: kernels, copies, calls and ranges as tuples, in microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stallscope.profiler.trace.timeline import (
    CallKind,
    Calls,
    Copies,
    CopyKind,
    Kernels,
    Ranges,
    Trace,
    TracedDevice,
)

US = 1000


def _ints(values: Sequence[int], dtype: type = np.int64) -> Any:
    return np.array(list(values), dtype=dtype)


def kernels(*rows: tuple[Any, ...]) -> Kernels:
    """(start, end, name, launch or −1, thread, device, stream, graph), the later ones optional."""
    full = [(*row, *(-1, -1, 0, 0, -1)[len(row) - 3 :]) for row in rows]
    start, end, name, launch, thread, device, stream, graph = (
        zip(*full, strict=True) if full else [()] * 8
    )
    return Kernels(
        _ints([t * US for t in start]),
        _ints([t * US for t in end]),
        _ints(device, np.int32),
        _ints(stream, np.int32),
        _ints(name, np.int32),
        _ints([t if t == -1 else t * US for t in launch]),
        _ints(thread, np.int32),
        _ints(graph),
    )


def copies(*rows: tuple[Any, ...]) -> Copies:
    """(start, end, kind, bytes, pageable, device, launch), the later ones optional."""
    full = [(*row, *(255, 0, -1)[len(row) - 4 :]) for row in rows]
    start, end, kind, size, pageable, device, launch = zip(*full, strict=True) if full else [()] * 7
    return Copies(
        _ints([t * US for t in start]),
        _ints([t * US for t in end]),
        _ints(device, np.int32),
        _ints([0] * len(start), np.int32),
        _ints(kind, np.uint8),
        _ints(size),
        _ints(pageable, np.uint8),
        _ints([t if t == -1 else t * US for t in launch]),
        _ints([0] * len(start), np.int32),
    )


def calls(*rows: tuple[int, int, CallKind, int]) -> Calls:
    """(start, end, kind, thread)."""
    start, end, kind, thread = zip(*rows, strict=True) if rows else [()] * 4
    return Calls(
        _ints([t * US for t in start]),
        _ints([t * US for t in end]),
        _ints(thread, np.int32),
        _ints(kind, np.uint8),
    )


def ranges(*rows: tuple[Any, ...]) -> Ranges:
    """(start, end, text, thread, payload), the later ones optional."""
    full = [(*row, *(0, -1)[len(row) - 3 :]) for row in rows]
    start, end, text, thread, payload = zip(*full, strict=True) if full else [()] * 5
    return Ranges(
        _ints([t * US for t in start]),
        _ints([t * US for t in end]),
        _ints(thread, np.int32),
        _ints(text, np.int32),
        _ints(payload),
    )


def trace(
    *,
    names: Sequence[str] = ("gemm", "gemv"),
    texts: Sequence[str] = (),
    devices: Sequence[TracedDevice] = (TracedDevice("cuda:0"),),
    **columns: Any,
) -> Trace:
    """A trace of what is given, and nothing else."""
    given = {
        "kernels": kernels(),
        "copies": copies(),
        "calls": calls(),
        "marks": ranges(),
        "operators": ranges(),
        "waits": ranges(),
    }
    return Trace(
        kind="nsys",
        tool="made by hand",
        path="trace",
        devices=tuple(devices),
        threads=("main", "other"),
        names=tuple(names),
        texts=tuple(texts),
        **(given | columns),
    )


__all__ = ["CallKind", "CopyKind", "calls", "copies", "kernels", "ranges", "trace"]
