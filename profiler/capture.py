"""Everything observed about one run, in memory: rows by table, whatever the source.

Times are integer nanoseconds on one monotonic clock. None is "not known", never zero.

Rows are named tuples: a step has twenty-two fields, and a frozen dataclass takes six microseconds
to fill them where a tuple takes two; recording shall not slow what it records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from stallscope.profiler.spec import Subject

if TYPE_CHECKING:
    import pandas as pd

Phase = Literal["prefill", "decode", "mixed", "other"]

# NVML and GPM average over up to a second: a sample speaks of the second before it, so that only a
# stretch of two seconds or more holds samples that are its own.
SAMPLE_WINDOW_NS = 1_000_000_000
LEAST_STRETCH_NS = 2 * SAMPLE_WINDOW_NS

# The engine sample of a process of its own, which works on while the engine stands still.
FRONTEND_CPU = "frontend_cpu_s_total"


class Source(NamedTuple):
    """A file, process or server that rows came from, and how its clock maps to ours."""

    id: int
    kind: str
    path: str
    clock: str
    offset_ns: int
    offset_error_ns: int


class Step(NamedTuple):
    """One pass of the engine's loop: schedule, forward, sample.

    `device_ns` is time the device worked on the forward pass (on a CPU: the forward call itself),
    `host_ns` the step's time outside it. `context_tokens` counts the KV entries read: over all
    scheduled requests, the keys that their new tokens attend to. `attention_pairs` counts
    (new token, attended key) pairs; both stay within the model's sliding window. `logit_rows` is
    the number of rows through the LM head. `blocked_by` names the limit that kept the queue's head
    out, as the engine itself saw it.

    All of these but `logit_rows` are work for requests. A step that fills its tensors up computes
    `padded_tokens`, reads `padded_context_tokens` and attends to `padded_pairs` on top, for nobody.
    """

    id: int
    rank: int
    start_ns: int
    end_ns: int
    device_ns: int | None
    host_ns: int | None
    phase: str
    warmup: bool
    prefill_requests: int
    prefill_tokens: int
    decode_requests: int
    context_tokens: int | None
    waiting: int | None
    running: int | None
    kv_used_bytes: int | None
    kv_total_bytes: int | None
    attention_pairs: int | None
    logit_rows: int | None
    blocked_by: str | None  # "kv", "seqs", "tokens", "batch" or None
    padded_tokens: int | None = None
    padded_context_tokens: int | None = None
    padded_pairs: int | None = None


class Request(NamedTuple):
    """One request's life. `preempted_ns` is the time it waited after having been admitted once."""

    id: int
    arrival_ns: int
    admitted_ns: int | None
    first_token_ns: int | None
    end_ns: int | None
    input_tokens: int
    cached_tokens: int | None
    output_tokens: int
    preemptions: int | None
    preempted_ns: int | None
    status: str  # "finished", "running", "waiting", "failed"


class Token(NamedTuple):
    """One generated token."""

    request: int
    t_ns: int


class DeviceSample(NamedTuple):
    """One reading of a device counter; `device` is "host" for the machine itself."""

    t_ns: int
    device: str
    name: str
    value: float
    unit: str


class EngineSample(NamedTuple):
    """One reading of an engine gauge or counter."""

    t_ns: int
    engine: str
    name: str
    value: float


class Event(NamedTuple):
    """Something that happened once: admit, kv_alloc, kv_init, kv_append, kv_read, kv_free,
    preempt, copy, oom, throttle, error, gap, probe."""

    t_ns: int
    kind: str
    request: int | None
    data: Mapping[str, Any]  # column data_json


class KernelSummary(NamedTuple):
    """Kernel time of one class in one phase, reduced from a trace."""

    device: str
    rank: int
    phase: str
    kernel_class: str  # column class
    name: str
    launches: int  # column count
    busy_ns: int
    exposed_ns: int | None


@dataclass(frozen=True, slots=True)
class Cut:
    """A capture that was not closed: when its last row was written, and what is known missing."""

    t_ns: int
    note: str


@dataclass(frozen=True, slots=True)
class Capture:
    """One run's evidence. Rows are sorted by time (steps and requests by id)."""

    subject: Subject = Subject()
    steps: tuple[Step, ...] = ()
    requests: tuple[Request, ...] = ()
    tokens: tuple[Token, ...] = ()
    device_samples: tuple[DeviceSample, ...] = ()
    engine_samples: tuple[EngineSample, ...] = ()
    events: tuple[Event, ...] = ()
    kernels: tuple[KernelSummary, ...] = ()
    sources: tuple[Source, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)  # tool, host, clock, flags
    cut: Cut | None = None

    def frame(self, table: str) -> pd.DataFrame:
        """Return one table as a pandas frame with the table's fixed dtypes.

        Raises ValueError for an unknown table.
        """
        from stallscope.profiler.frames import frame

        return frame(self, table)
