"""What a diagnosis is: plain data that reports format and never compute on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stallscope.analyzers.explain.result import ExplainStep
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.evidence import BoundSide, Measure, NotObservable, Provenance
from stallscope.profiler.spec import Subject


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Where evidence came from, and of several sources how one's clock was moved onto ours."""

    kind: str
    path: str
    offset_s: float | None = None
    offset_error_s: float | None = None


@dataclass(frozen=True, slots=True)
class CaptureInfo:
    """The capture a diagnosis rests on; `cut_note` says when and how it was cut.

    An `empty` one holds nothing that could be judged.
    """

    sources: tuple[SourceInfo, ...]
    cut: bool
    duration_s: float | None
    cut_note: str | None = None
    empty: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """One edge of the causal chain, with the names of the measures behind it."""

    cause: str
    effect: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limiting class for each goal."""

    ttft: str
    tpot: str
    throughput: str


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a confidence rests on, each 0 to 1.

    `quality` of the evidence; `margin` over the runner-up (of undetermined: how far it is from any
    class); `stability` over windows; the `unexplained` share; `most` that this kind of evidence
    allows; and the `weight` of them together.
    """

    quality: float
    margin: float
    stability: float
    unexplained: float
    most: float
    weight: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer. `between` names the candidates when the class is undetermined.

    `limit` is the admission limit that held a queue, as a measure `limit_…` names it; `grounds` is
    what the confidence rests on; `finding` is its entry in docs/findings.md. `is_load_seen` is
    False where the load counts as served only because nothing tells what waited.
    """

    bottleneck: str  # JSON "class"
    confidence: float
    load: str
    phase: str
    sentence: str
    limits: Limits
    between: tuple[str, ...] = ()
    next_limit: str | None = None  # JSON "next"
    chain: tuple[Link, ...] = ()
    limit: str | None = None
    grounds: Grounds | None = None
    finding: str | None = None
    is_load_seen: bool = True


@dataclass(frozen=True, slots=True)
class DocumentVerdict:
    """What the document's own rules say, and why the verdict differs where it does."""

    classes: tuple[str, ...]
    advice: str | None
    differs_because: str | None
    sentence: str  # "By the document's rules: …"


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One of the document's rules: "met", "not met" or "not observable", and its numbers.

    `text` is the rule in words with its thresholds.
    """

    id: str
    text: str
    status: str
    reason: str
    measures: tuple[Measure, ...]


@dataclass(frozen=True, slots=True)
class Distribution:
    """Seconds over `n` requests (or gaps); None where a foreign file does not tell one."""

    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    n: int | None


@dataclass(frozen=True, slots=True)
class Throughput:
    """Rates over the measured span; None where not observable."""

    input_tokens_per_s: float | None
    output_tokens_per_s: float | None
    requests_per_s: float | None


@dataclass(frozen=True, slots=True)
class BudgetPart:
    """Seconds of a phase's step time that one resource explains; `share` of the phase's time."""

    part: str
    time_s: float
    share: float
    provenance: Provenance
    source: str
    side: BoundSide | None = None  # of a bound: the true value is at least this


@dataclass(frozen=True, slots=True)
class PhaseBudget:
    """A phase's steps (warm-up excluded), their time, and where it went. "all" sums the phases.

    `budget` is empty when the device or the model is not known. `mean_step_s` is per step.
    `excess_s` of the unexplained time is what measured linears take beyond what their bytes and
    FLOPs explain. `is_host_traced` says that a kernel trace showed all of the host's part: none of
    it hides in the unexplained.
    """

    phase: str
    count: int
    time_s: float
    share: float
    mean_step_s: float
    budget: tuple[BudgetPart, ...]
    excess_s: float = 0.0
    is_host_traced: bool = False


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """An operator in one phase, per layer or per step: the document's lost table of section 3.1.

    `intensity` is FLOP per byte; `bound` is "compute", "memory", or "neither" where its measured
    time is more than either explains; `time_s` its time for all its instances in a step; both are
    None without a device.
    """

    phase: str
    name: str
    instances: int
    flops: float
    bytes: float
    intensity: float
    bound: str | None
    time_s: float | None


@dataclass(frozen=True, slots=True)
class KvRow:
    """KV cache size at one sequence length; `source` says formula or the engine's allocation."""

    seq_len: int
    bytes: int
    provenance: Provenance
    source: str


@dataclass(frozen=True, slots=True)
class LifeStage:
    """One of the four stages of the KV cache's life (document, section 3.2), as recorded."""

    stage: str  # "initialised", "appended", "read", "freed"
    events: int
    tokens: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Gain:
    """A predicted change; `error` is the model's relative error on the observed run."""

    metric: str
    unit: str
    before: float  # JSON "from"
    after: float  # JSON "to"
    error: float

    @property
    def is_told(self) -> bool:
        """Whether the change exceeds its error, in the whole per cent that reports show."""
        change = self.after / self.before - 1.0
        return round(100 * self.error) < round(100 * abs(change))


@dataclass(frozen=True, slots=True)
class Remedy:
    """An action, its flag by engine, its gain (None when no model produced one).

    `evidence` names the measures it rests on, `cost` what it takes in exchange.
    """

    action: str
    flag: Mapping[str, str]
    gain: Gain | None
    check: str
    evidence: tuple[str, ...] = ()
    cost: str = ""


@dataclass(frozen=True, slots=True)
class WontHelp:
    """A popular fix that does nothing here."""

    action: str
    because: str


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the run with its own load and class.

    `limit` is the admission limit that held its queue, as in Verdict; `put_back` how many running
    requests were preempted in it, by the gauges; None where neither shows.
    """

    from_s: float
    to_s: float
    bottleneck: str  # JSON "class"
    load: str
    limit: str | None = None
    put_back: float | None = None  # JSON "preemptions_inferred"


@dataclass(frozen=True, slots=True)
class StepPoint:
    """A point of the timeline plot; seconds from the first step."""

    t_s: float
    duration_s: float
    phase: str
    kv_used: float | None  # fraction
    running: int | None
    waiting: int | None


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """A phase's place under the roof."""

    label: str
    intensity: float  # FLOP/B
    flops_per_s: float


@dataclass(frozen=True, slots=True)
class Roofline:
    """The roof (peak FLOP/s, bytes/s) and the run's points."""

    peak_flops: float
    peak_bytes_per_s: float
    kind: str  # "datasheet" or "achievable"
    points: tuple[RooflinePoint, ...]

    @property
    def ridge(self) -> float:
        """The intensity (FLOP/B) above which compute binds instead of memory."""
        return self.peak_flops / self.peak_bytes_per_s


@dataclass(frozen=True, slots=True)
class Series:
    """What plots need, at most 5,000 points a series."""

    timeline: tuple[StepPoint, ...] = ()
    roofline: Roofline | None = None


@dataclass(frozen=True, slots=True)
class KernelRow:
    """Kernels of one name, or with `name` None of one class, over all devices of a trace.

    `share` is of the time of all kernels and copies; those that overlap count each. `exposed_s` is
    the time in which nothing else ran, of communication and copies.
    """

    phase: str
    kernel_class: str
    name: str | None
    launches: int
    busy_s: float
    share: float
    exposed_s: float | None


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One load of a sweep, by the client; `load` counts what the sweep's axis names.

    `marginal` is what the added load bought in output tokens per second, as a share of its own
    proportion: 1 is linear, 0 nothing. Rows of one `workload` have the same lengths.
    """

    source: str
    load: float | None
    workload: int
    input_tokens: float | None
    output_tokens: float | None
    in_flight: float | None
    requests_per_s: float | None
    output_tokens_per_s: float | None
    ttft_s: float | None
    tpot_s: float | None
    e2e_s: float | None
    failed: int | None
    bottleneck: str  # JSON "class"
    marginal: float | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """Trials at several loads; `knee` is the last load before more of it stops paying."""

    axis: str | None  # "concurrency" or "requests per second"
    rows: tuple[SweepRow, ...]
    knee: float | None
    sentence: str
    workload: int  # the one that the knee is of


@dataclass(frozen=True, slots=True)
class Replica:
    """One of several servers or engines; means over time, derived from gauges and counters.

    `kv_used` is the highest share of its KV pool seen; `remark` says what sets it apart; `limit` is
    what held its queue, as in Verdict.
    """

    replica: str
    bottleneck: str  # JSON "class"
    confidence: float
    load: str
    sentence: str
    in_flight: float | None
    waiting: float | None
    running: float | None
    kv_used: float | None
    output_tokens_per_s: float | None
    remark: str | None = None
    limit: str | None = None


@dataclass(frozen=True, slots=True)
class Fleet:
    """What replicas have in common, and what sets some apart."""

    sentence: str
    common_limit: str | None
    stragglers: tuple[str, ...]
    imbalance: str | None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything a report shows."""

    version: str
    capture: CaptureInfo
    subject: Subject
    thresholds: Thresholds
    goal: str | None
    verdict: Verdict
    document: DocumentVerdict
    rules: tuple[RuleResult, ...]
    latency: Mapping[str, Distribution]  # ttft_s, tpot_s, itl_s, e2e_s, queue_s
    throughput: Throughput
    phases: tuple[PhaseBudget, ...]
    operators: tuple[OperatorRow, ...]
    kv_table: tuple[KvRow, ...]
    kv_life: tuple[LifeStage, ...]
    measures: tuple[Measure, ...]
    remedies: tuple[Remedy, ...]
    wont_help: tuple[WontHelp, ...]
    not_observable: tuple[NotObservable, ...]
    windows: tuple[Window, ...]
    notes: tuple[str, ...]  # capture checks, each a plain sentence
    warnings: tuple[str, ...] = ()  # stated facts that the capture contradicts, and were not used
    kernels: tuple[KernelRow, ...] = ()  # of a trace
    sweep: Sweep | None = None  # of a benchmark at several loads
    replicas: tuple[Replica, ...] = ()  # the most held first
    fleet: Fleet | None = None
    series: Series = field(default_factory=Series)
    explain: tuple[ExplainStep, ...] = ()  # how the verdict was reached, in order
