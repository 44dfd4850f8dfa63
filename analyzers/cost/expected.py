"""The time to expect of a step on a GPU: the roofline with what real kernels reach of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from stallscope.analyzers.cost.achievable import DEFAULT, Achievable
from stallscope.analyzers.cost.operators import (
    Operator,
    StepShape,
    activation_bytes_per_element,
    attention_operators,
    step_operators,
)
from stallscope.analyzers.cost.roofline import CostModel, StepTime
from stallscope.profiler.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of a step, `instances` times: seconds by resource, without what it costs to start.

    `seconds` is of one instance, start included; `part` the part of a step that it counts under.
    """

    part: str
    instances: int
    start_s: float
    memory_s: float
    compute_s: float

    @property
    def busy_s(self) -> float:
        """Seconds of one instance after its start."""
        return math.hypot(self.memory_s, self.compute_s)


def kernel_of(operators: Sequence[Operator], cost: CostModel, reach: Achievable) -> Kernel:
    """Return the kernel that runs these operators, of one group, together."""
    machine, first = cost.machine, operators[0]
    is_attention = first.group == "attention"
    memory = reach.attention_memory if is_attention else reach.product_memory
    compute = reach.attention_compute if is_attention else reach.product_compute
    ranks = machine.ranks
    memory_s = sum(o.bytes_on_rank(ranks) for o in operators) / (memory * machine.bytes_per_s)
    flops = sum(o.flops / o.shares(ranks) for o in operators)
    compute_s = flops / (compute * machine.peak_flops)
    of_memory = "kv" if is_attention else "weights"
    return Kernel(
        part=of_memory if memory_s >= compute_s else "compute",
        instances=first.instances,
        start_s=reach.attention_start_s if is_attention else reach.product_start_s,
        memory_s=memory_s,
        compute_s=compute_s,
    )


def _kernels(operators: Sequence[Operator], cost: CostModel, reach: Achievable) -> Iterator[Kernel]:
    # Attention over all keys, over a window and over states are kernels of their own.
    for _, together in groupby(operators, key=_fused):
        yield kernel_of(tuple(together), cost, reach)


def _fused(operator: Operator) -> tuple[str, int, str]:
    own = operator.name if operator.group == "attention" else ""
    return operator.group, operator.instances, own


def small_kernels(spec: ModelSpec, reach: Achievable) -> float:
    """Count the small kernels of a step: of layers of an attention and an MLP, and of experts."""
    mixed = 0 if spec.mixture is None else spec.mixture.layers
    return spec.blocks / 2 * reach.small_kernels + mixed * reach.expert_kernels


def _small_s(cost: CostModel, shape: StepShape, reach: Achievable) -> tuple[float, float]:
    """Seconds of the small kernels of all layers: of their starts, and of the rows they move."""
    spec, machine = cost.spec, cost.machine
    heads = (spec.num_heads + spec.num_kv_heads) * spec.head_dim
    # Two norms and two additions read and write the hidden state; the gated MLP reads two, writes
    # one; rotation reads and writes queries and keys.
    width = 8 * spec.hidden_size + (3 * spec.intermediate_size + 2 * heads) / machine.ranks
    moved = shape.tokens * width * activation_bytes_per_element(cost.dtype)
    layers = spec.blocks / 2  # as many layers of an attention and an MLP
    starts = small_kernels(spec, reach) * reach.small_start_s
    return starts, layers * moved / (reach.product_memory * machine.bytes_per_s)


@dataclass(frozen=True)
class ExpectedModel(CostModel):
    """A model on a GPU as its kernels are expected to run it; `excess` is what starting costs."""

    reach: Achievable = field(default=DEFAULT)
    _products: dict[tuple[int, int], StepTime] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def step_time(self, shape: StepShape) -> StepTime:
        """Time a step, by part."""
        products = self._products_of(shape)
        attention = self._summed(
            attention_operators(self.spec, shape, dtype=self.dtype, kv_dtype=self.kv_dtype)
        )
        return StepTime(
            weights=products.weights,
            kv=attention.kv,
            compute=products.compute + attention.compute,
            communication=self._reduce_s(shape.tokens),
            excess=products.excess + attention.excess,
            transfer=self.machine.transfer_s,
        )

    def kernels(self, shape: StepShape) -> int:
        """Count the kernels of a step: products, attention, small ones, and sums over ranks."""
        operators = step_operators(self.spec, shape, dtype=self.dtype, kv_dtype=self.kv_dtype)
        large = sum(kernel.instances for kernel in _kernels(operators, self, self.reach))
        sums = self.spec.blocks if self.machine.ranks > 1 else 0
        return large + round(small_kernels(self.spec, self.reach)) + sums

    def _products_of(self, shape: StepShape) -> StepTime:
        """Time the linears and the small kernels; a run repeats few row counts."""
        key = (shape.tokens, shape.logit_rows)
        if key not in self._products:
            operators = step_operators(self.spec, shape, dtype=self.dtype, kv_dtype=self.kv_dtype)
            time = self._summed([o for o in operators if o.group != "attention"])
            starts, moved = _small_s(self, shape, self.reach)
            self._products[key] = replace(time, excess=time.excess + starts + moved)
        return self._products[key]

    def _summed(self, operators: Sequence[Operator]) -> StepTime:
        parts = {"weights": 0.0, "kv": 0.0, "compute": 0.0}
        starts = 0.0
        for kernel in _kernels(operators, self, self.reach):
            parts[kernel.part] += kernel.instances * kernel.busy_s
            starts += kernel.instances * kernel.start_s
        return StepTime(**parts, communication=0.0, excess=starts)

    def _reduce_s(self, tokens: int) -> float:
        ranks = self.machine.ranks
        if ranks == 1 or not self.machine.link_bytes_per_s:
            return 0.0
        starts = self.spec.blocks * self.reach.reduce_start_s
        return starts + self._communication(tokens) / self.reach.reduce_link


def expected_model(cost: CostModel, reach: Achievable = DEFAULT) -> ExpectedModel | None:
    """Return what to expect on a GPU of the table; None where a machine was measured itself."""
    if cost.machine.kind != "datasheet" or cost.machine.linear_times:
        return None
    return ExpectedModel(cost.spec, cost.dtype, cost.kv_dtype, cost.machine, reach=reach)
