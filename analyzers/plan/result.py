"""What a plan tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stallscope.analyzers.cost.speculation import Speculation
from stallscope.analyzers.result import BudgetPart, KvRow, Limits, OperatorRow
from stallscope.profiler.evidence import NotObservable
from stallscope.profiler.spec import Calibration, Subject

# A roofline is a floor: against real CPU decode it missed by 65-73 % (mean absolute error over
# three model sizes), always on the fast side. See docs/metrics.md.
FLOOR_ERROR = 0.70
# What an expectation's error rests on: runs or batch sizes that a calibration left out; public runs
# of other machines; or nothing, where a calibration was not tested on a machine that has no such.
ErrorFrom = Literal["left out", "public runs", "untested"]
# What engines take of a GPU's memory by default (vLLM's gpu_memory_utilization).
MEMORY_FRACTION = 0.90

Interval = tuple[float, float]  # the least and the most


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """Bytes on each device. `kv_bytes` holds all concurrent requests at full length,
    a draft model's cache of them included.

    `usable_bytes` is MEMORY_FRACTION of the device's memory; `free_bytes` what the rest leaves of
    it, negative where the plan does not fit; both and `max_concurrency` are None without a device.
    """

    weights_bytes: int
    kv_bytes_per_token: int
    kv_bytes: int
    activation_bytes: int
    usable_bytes: int | None
    free_bytes: int | None
    max_concurrency: int | None
    draft_weights_bytes: int = 0  # of a model that drafts tokens


@dataclass(frozen=True, slots=True)
class PhasePlan:
    """One step of a phase: FLOPs, bytes, intensity; its floor and what binds, with a device.

    `share` in `budget` is of the floor.
    """

    phase: str
    what: str
    flops: float
    bytes: float
    intensity: float
    time_s: float | None
    bound: str | None
    budget: tuple[BudgetPart, ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted value; `error` is relative to the true one, `worst` the value that allows.

    `value` is what is possible at best. `expected` is what real kernels and engines make of it on
    a GPU of the table, or measured steps on a machine that was probed, with its own relative error;
    None for other devices. `expected_error_from` says what that error rests on.
    """

    value: float
    unit: str
    error: float
    worst: float
    expected: float | None = None
    expected_error: float | None = None
    expected_error_from: ErrorFrom | None = None


@dataclass(frozen=True, slots=True)
class Attribution:
    """Output tokens per second more than the first choice makes, and where they come from.

    `fewer_bytes` at the first choice's batch and queue; `larger_batch` where nobody waits, before
    and after; `less_queueing` is the rest: what waiting cost before, less what it costs after.
    """

    total: float
    larger_batch: float
    fewer_bytes: float
    less_queueing: float


@dataclass(frozen=True, slots=True)
class Choice:
    """One pair of dtypes: what fits and what to expect. Times and rates are None if nothing fits.

    `running` is what ran at once on average: engines let in more than fit at full length.
    `gain` is against the first choice; None for that one, and where either does not fit.
    """

    dtype: str
    kv_dtype: str
    weights_bytes: int
    kv_bytes_per_token: int
    max_concurrency: int | None
    running: int
    tpot_s: float | None
    wait_s: float | None
    throughput_tokens_per_s: float | None
    gain: Attribution | None


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One concurrency: how many run on average, what binds their decode step, what to expect.

    Times and rates are of the schedule that a plan at this concurrency shows; `tpot_s` is None
    where a request makes a single token.
    """

    concurrency: int
    running: int
    bound: str
    step_s: float
    tpot_s: float | None
    throughput_tokens_per_s: float


@dataclass(frozen=True, slots=True)
class Sweep:
    """The rows, and the turns: None where compute never binds decode, or memory is not known."""

    rows: tuple[SweepRow, ...]
    compute_from: int | None
    kv_full_from: int | None


@dataclass(frozen=True, slots=True)
class Launches:
    """A decode step of so many kernels; seconds, intervals from the least to the most.

    `step_s` is expected with CUDA graphs, `graph_s` what replaying takes of it. One by one the host
    takes `eager_s`, beside the device, so that the longer of them counts: `eager_step_s`.
    """

    kernels: int
    step_s: float
    graph_s: Interval
    eager_s: Interval
    eager_step_s: Interval


@dataclass(frozen=True, slots=True)
class LinkRow:
    """A link between devices and one to the host, with what a plan takes over them.

    `communication_s` and `transfer_s` are of a decode step of all requests; the rest is what to
    expect, or the best where nothing is expected beside it. None: not known, or nothing fits.
    """

    link: str | None
    link_bytes_per_s: float | None
    host_link_bytes_per_s: float | None
    communication_s: float
    transfer_s: float
    ttft_s: float | None
    tpot_s: float | None
    throughput_tokens_per_s: float | None


@dataclass(frozen=True, slots=True)
class PredictedLimit:
    """What the verdict's engine says of the predicted run; see result.Verdict for the fields.

    It has no confidence: what it rests on is predicted, not seen.
    """

    bottleneck: str
    load: str
    phase: str
    between: tuple[str, ...]
    next_limit: str | None
    limits: Limits
    sentence: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything `plan` shows."""

    subject: Subject
    parameters: int
    ffn_share: float
    memory: MemoryMap
    kv_table: tuple[KvRow, ...]
    ridge: float | None
    phases: tuple[PhasePlan, ...]
    operators: tuple[OperatorRow, ...]
    ttft_s: Prediction | None
    tpot_s: Prediction | None
    throughput_tokens_per_s: Prediction | None
    notes: tuple[str, ...]
    not_observable: tuple[NotObservable, ...]
    choices: tuple[Choice, ...] = ()
    sweep: Sweep | None = None
    speculation: Speculation | None = None
    calibration: Calibration | None = None
    limit: PredictedLimit | None = None
    links: tuple[LinkRow, ...] = ()
    launches: Launches | None = None  # None where no kernels are expected: not a GPU of the table
