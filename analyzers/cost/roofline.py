"""The time of a step's operators on a machine: each by the resource that binds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stallscope.analyzers.cost.kv_bytes import kv_bytes_per_token
from stallscope.analyzers.cost.operators import (
    Operator,
    StepShape,
    activation_bytes_per_element,
    attention_operators,
    step_operators,
)
from stallscope.profiler.spec import Calibration, ModelSpec

# A linear's measured time is due to reading, or to arithmetic, as far as its roofline explains it
# within this factor. Real one-row products read at 0.4 to 1.3 of the probed rate (torch 2.13 on an
# AMD EPYC), and reading and arithmetic that do not overlap take up to twice the larger. What a
# 50 KB linear takes, 7 to 26 times its roofline and more on a busy machine, is something else.
EXPLAINED_WITHIN = 2.0


@dataclass(frozen=True)
class Machine:
    """What the device can do at the run's dtype.

    `linear_times` holds measured seconds of one instance, by group, as (rows, seconds) sorted by
    rows; empty where nothing was measured. `linears_from` says how they were found. `ranks` share
    the work (tensor parallel); `link_bytes_per_s` connects them. `holds_all` where weights and KV
    are known to lie in the device's own memory.
    """

    peak_flops: float
    bytes_per_s: float
    kind: str  # "datasheet" or "achievable"
    linear_times: Mapping[str, tuple[tuple[int, float], ...]] = field(default_factory=dict)
    linears_from: str = "linears probed at the run's own row counts"
    ranks: int = 1
    link_bytes_per_s: float | None = None
    holds_all: bool = False
    offloaded_bytes: float = 0.0  # of weights in host memory, brought over in every step
    host_link_bytes_per_s: float | None = None
    launch_s: float | None = None  # one small operator, as measured
    calibration: Calibration | None = None

    @property
    def transfer_s(self) -> float:
        """Seconds in which each device fetches its offloaded weights, once a step."""
        if not self.offloaded_bytes or not self.host_link_bytes_per_s:
            return 0.0
        return self.offloaded_bytes / self.host_link_bytes_per_s


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """Seconds of one operator (all instances), the part it counts under, and the hidden term.

    `time_s` is what it takes, `explained_s` how much of that is due to what binds it.
    """

    operator: Operator
    part: str
    time_s: float
    hidden_s: float
    is_measured: bool
    explained_s: float

    @property
    def is_explained(self) -> bool:
        """Whether bytes or FLOPs explain all of its time."""
        return self.explained_s >= self.time_s


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step by part; the floor of a step is their sum and `excess`.

    `probed_…` say how much of the weights and compute was measured, not computed; `excess` is what
    measured linears take beyond what their bytes and FLOPs explain.
    """

    weights: float
    kv: float
    compute: float
    communication: float
    probed_weights: float = 0.0
    probed_compute: float = 0.0
    excess: float = 0.0
    transfer: float = 0.0

    @property
    def floor(self) -> float:
        """The least time in which this machine can do the step."""
        moved = self.weights + self.kv + self.communication + self.transfer
        return moved + self.compute + self.excess


def interpolate(points: tuple[tuple[int, float], ...], rows: int) -> float:
    """Return seconds at `rows`, linear between measured points.

    Below the first point its time holds (a matrix is read whole whatever the rows); above the
    last one time grows with rows.
    """
    if rows <= points[0][0]:
        return points[0][1]
    last_rows, last_s = points[-1]
    if rows >= last_rows:
        return last_s * rows / last_rows
    upper = next(i for i, (r, _) in enumerate(points) if r >= rows)
    (r0, t0), (r1, t1) = points[upper - 1], points[upper]
    return t0 + (t1 - t0) * (rows - r0) / (r1 - r0)


def operator_time(operator: Operator, machine: Machine, share_of_group: float) -> OperatorTime:
    """Time one operator: max(FLOPs / peak, bytes / bandwidth), or as measured for its group.

    Only the binding term counts; the other is `hidden_s`. A measured time keeps the part that the
    roofline gives it, as far as the roofline explains it.
    """
    scale = operator.instances / operator.shares(machine.ranks)
    compute_s = scale * operator.flops / machine.peak_flops
    on_rank = operator.bytes_on_rank(machine.ranks)
    memory_s = operator.instances * on_rank / machine.bytes_per_s
    is_memory = memory_s >= compute_s
    part = ("kv" if operator.group == "attention" else "weights") if is_memory else "compute"
    roofline_s, hidden_s = max(compute_s, memory_s), min(compute_s, memory_s)
    points = machine.linear_times.get(operator.group)
    if not points:
        return OperatorTime(operator, part, roofline_s, hidden_s, False, roofline_s)
    time_s = scale * share_of_group * interpolate(points, operator.rows)
    explained_s = min(time_s, EXPLAINED_WITHIN * roofline_s)
    return OperatorTime(operator, part, time_s, hidden_s, True, explained_s)


@dataclass(frozen=True, slots=True)
class _Linears:
    """Seconds of a step's linears by part, how much of them was measured, and the excess."""

    weights: float
    compute: float
    probed_weights: float
    probed_compute: float
    excess: float


def _sum(times: Iterable[OperatorTime], part: str) -> float:
    return sum(t.explained_s for t in times if t.part == part)


@dataclass(frozen=True)
class CostModel:
    """A model at a dtype on a machine."""

    spec: ModelSpec
    dtype: str
    kv_dtype: str
    machine: Machine
    _linears: dict[tuple[int, int], _Linears] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def operator_times(self, shape: StepShape) -> tuple[OperatorTime, ...]:
        """Time each operator of a step."""
        operators = step_operators(self.spec, shape, dtype=self.dtype, kv_dtype=self.kv_dtype)
        group_bytes: dict[str, float] = {}
        for operator in operators:
            total = group_bytes.get(operator.group, 0.0) + operator.weight_bytes
            group_bytes[operator.group] = total
        return tuple(
            operator_time(o, self.machine, o.weight_bytes / (group_bytes[o.group] or 1.0))
            for o in operators
        )

    def step_time(self, shape: StepShape) -> StepTime:
        """Time a step, by part."""
        linears = self._linear_parts(shape)
        attention = [
            operator_time(operator, self.machine, 1.0)
            for operator in attention_operators(
                self.spec, shape, dtype=self.dtype, kv_dtype=self.kv_dtype
            )
        ]
        return StepTime(
            weights=linears.weights,
            kv=_sum(attention, "kv"),
            compute=linears.compute + _sum(attention, "compute"),
            communication=self._communication(shape.tokens),
            probed_weights=linears.probed_weights,
            probed_compute=linears.probed_compute,
            excess=linears.excess,
            transfer=self.machine.transfer_s,
        )

    def products_s(self, shape: StepShape) -> float:
        """Seconds of a step's linears, whatever explains them."""
        linears = self._linear_parts(shape)
        return linears.weights + linears.compute + linears.excess

    def _linear_parts(self, shape: StepShape) -> _Linears:
        """Seconds of the linears by part; a run repeats few row counts."""
        key = (shape.tokens, shape.logit_rows)
        if key not in self._linears:
            times = [t for t in self.operator_times(shape) if t.operator.group != "attention"]
            probed = [t for t in times if t.is_measured and t.is_explained]
            self._linears[key] = _Linears(
                _sum(times, "weights"),
                _sum(times, "compute"),
                _sum(probed, "weights"),
                _sum(probed, "compute"),
                sum(t.time_s - t.explained_s for t in times),
            )
        return self._linears[key]

    def _communication(self, tokens: int) -> float:
        """A ring all-reduce after each attention and MLP, by bytes alone; latency is left out."""
        ranks, link = self.machine.ranks, self.machine.link_bytes_per_s
        if ranks == 1 or not link:
            return 0.0
        payload = tokens * self.spec.hidden_size * activation_bytes_per_element(self.dtype)
        return self.spec.blocks * 2 * (ranks - 1) / ranks * payload / link


def kv_bytes_on_rank(cost: CostModel) -> int:
    """Return KV bytes per token of one device's pool, as engines gauge it."""
    ranks = cost.machine.ranks
    return kv_bytes_per_token(cost.spec, cost.kv_dtype, tensor_parallel=ranks)
