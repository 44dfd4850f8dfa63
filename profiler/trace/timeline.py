"""A trace of what devices and host threads did, in columns, whatever tool recorded it.

Times are integer nanoseconds on the trace's own clock. Rows need not be sorted. Names and threads
are indices into the trace's tuples. −1 stands for "not known" in integer columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]

UNKNOWN = -1


class CallKind(IntEnum):
    """What a host thread asked of the device's runtime."""

    OTHER = 0
    LAUNCH = 1
    GRAPH_LAUNCH = 2
    SYNC = 3
    COPY = 4
    ALLOC = 5
    CAPTURE = 6  # of a CUDA graph: kernels are recorded then, not run


class CopyKind(IntEnum):
    """Which way bytes went; a memset moves none over a link."""

    OTHER = 0
    HOST_TO_DEVICE = 1
    DEVICE_TO_HOST = 2
    WITHIN_DEVICE = 3
    BETWEEN_DEVICES = 4
    MEMSET = 5


@dataclass(frozen=True, slots=True)
class Kernels:
    """Kernels that ran. `launch_ns` is when the host's launch call began, on thread `thread`.

    A kernel of a CUDA graph has its graph launch there, and `graph` is the graph's id.
    """

    start_ns: Ints
    end_ns: Ints
    device: SmallInts
    stream: SmallInts
    name: SmallInts
    launch_ns: Ints
    thread: SmallInts
    graph: Ints

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies and memsets on devices; `pageable` is 1 where host memory was not pinned, 0 where it
    was, 255 where that is not known."""

    start_ns: Ints
    end_ns: Ints
    device: SmallInts
    stream: SmallInts
    kind: Bytes
    bytes: Ints
    pageable: Bytes
    launch_ns: Ints
    thread: SmallInts

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of host threads into the device's runtime or driver, of kind CallKind."""

    start_ns: Ints
    end_ns: Ints
    thread: SmallInts
    kind: Bytes

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Named spans of host threads: NVTX ranges, annotations, operators, OS calls.

    `text` indexes Trace.texts. `payload` is the range's own integer, where one was given.
    """

    start_ns: Ints
    end_ns: Ints
    thread: SmallInts
    text: SmallInts
    payload: Ints

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of one device metric, named as docs/metrics.md names it."""

    device: int
    name: str
    unit: str
    t_ns: Ints
    value: Floats


@dataclass(frozen=True, slots=True)
class TracedDevice:
    """A device as the trace describes it: `label` like "cuda:0", and its product name."""

    label: str
    product: str | None = None
    facts: Mapping[str, float] = field(default_factory=dict)  # memory_bytes, bandwidth_bytes_per_s


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about the trace itself that a reader must tell: what, and what to do about it."""

    what: str  # "cut", "no_kernel_table", "nvtx_lost", …
    reason: str
    how: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """One process's trace, or one rank's."""

    kind: str  # "nsys", "kineto"
    tool: str  # with its version, as the file states it
    path: str
    devices: tuple[TracedDevice, ...]
    threads: tuple[str, ...]
    names: tuple[str, ...]  # of kernels, as short as they can be had without losing the template
    texts: tuple[str, ...]  # of ranges, marks and waits
    kernels: Kernels
    copies: Copies
    calls: Calls
    marks: Ranges  # NVTX ranges and user annotations
    operators: Ranges  # operators of a framework ("aten::mm"), where they are recorded as such
    waits: Ranges  # calls in which a thread waited: OS runtime, the interpreter's lock
    series: tuple[Series, ...] = ()
    rank: int | None = None
    window_ns: tuple[int, int] | None = None  # in which the tool recorded, where the file says
    unix_ns: int | None = None  # the wall clock at time 0 of the trace
    traces_kernels: bool = True  # False: the tool was not asked to, or could not
    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


def empty(columns: type[Any]) -> Any:
    """Return columns of the given type (Kernels, Copies, …) without rows."""
    dtypes = {"Ints": np.int64, "SmallInts": np.int32, "Bytes": np.uint8}
    return columns(*(np.empty(0, dtype=dtypes[str(f.type)]) for f in fields(columns)))
