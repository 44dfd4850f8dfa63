"""Where time went: latencies, rates, phases, operators, kernels."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.profiler.evidence import BoundSide, Provenance


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
    it hides in the unexplained. `bottleneck` is what limits the phase's own steps, whatever queues;
    None of all of them, and where steps are not known.
    """

    phase: str
    count: int
    time_s: float
    share: float
    mean_step_s: float
    budget: tuple[BudgetPart, ...]
    excess_s: float = 0.0
    is_host_traced: bool = False
    bottleneck: str | None = None  # JSON "class"


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """An operator in one phase, per layer or per step: the document's lost table of section 3.1.

    `intensity` is FLOP per byte; `bound` is "compute", "memory", or "neither" where more of its
    measured time is unexplained than explained; `time_s` its time for all its instances in a step,
    and `explained_s` how much of it is due to its bytes or FLOPs; all are None without a device.
    """

    phase: str
    name: str
    instances: int
    flops: float
    bytes: float
    intensity: float
    bound: str | None
    time_s: float | None
    explained_s: float | None = None


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
