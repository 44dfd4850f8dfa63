"""One step of each phase: its work, its floor, and what binds it."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.cost.operator_table import operator_rows, unpriced_rows
from stallscope.analyzers.cost.operators import (
    StepShape,
    decode_shape,
    prefill_shape,
    step_operators,
)
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.plan.options import PlanOptions
from stallscope.analyzers.plan.result import PhasePlan
from stallscope.analyzers.result import BudgetPart, OperatorRow
from stallscope.profiler.spec import Subject
from stallscope.profiler.wording import counted


def _requests(count: int) -> str:
    return counted(count, "request")


def _prompt(tokens: int) -> str:
    return "one prompt of 1 token" if tokens == 1 else f"one prompt of {tokens:,} tokens"


def mean_context(options: PlanOptions) -> int:
    """Return the mean tokens of a request while it decodes."""
    return options.input_tokens + (options.output_tokens + 1) // 2


def phase_shapes(options: PlanOptions) -> tuple[tuple[str, str, StepShape], ...]:
    """The steps that stand for the phases: one prompt; all requests at their mean context."""
    context = mean_context(options)
    window = options.model.sliding_window
    return (
        (
            "prefill",
            _prompt(options.input_tokens),
            prefill_shape(options.input_tokens, window=window),
        ),
        (
            "decode",
            f"{_requests(options.concurrency)} at {context:,} tokens of context",
            decode_shape(options.concurrency, context, window=window),
        ),
    )


def budget_of(cost: CostModel, shape: StepShape) -> tuple[BudgetPart, ...]:
    """Return a step's floor by part."""
    time = cost.step_time(shape)
    source = f"roofline against the {cost.machine.kind} peak"
    if cost.machine.linear_times:
        source = f"{cost.machine.linears_from}, the rest {source}"
    parts = {
        "weights": time.weights,
        "kv": time.kv,
        "compute": time.compute,
        "communication": time.communication,
        "transfer": time.transfer,
    }
    if time.excess:
        parts["unexplained"] = time.excess  # of measured products, beyond their bytes and FLOPs
    return tuple(
        BudgetPart(name, seconds, seconds / time.floor, "estimated", source)
        for name, seconds in parts.items()
    )


def bound_of(budget: Sequence[BudgetPart]) -> str:
    """Return the class of limit that takes most of a floor; what nothing explains is none."""
    shares = {p.part: p.share for p in budget}
    sums = {
        "bandwidth": shares["weights"] + shares["kv"],
        "compute": shares["compute"],
        "interconnect": shares["communication"] + shares["transfer"],
    }
    top = max(sums, key=sums.__getitem__)
    return "undetermined" if shares.get("unexplained", 0.0) > sums[top] else top


def phase_plan(
    phase: str, what: str, shape: StepShape, subject: Subject, cost: CostModel | None
) -> PhasePlan:
    """Describe one step of a phase."""
    spec, dtype, kv_dtype = subject.model, subject.dtype or "", subject.kv_dtype or ""
    if spec is None:
        raise ValueError("a plan needs a model")
    operators = step_operators(spec, shape, dtype=dtype, kv_dtype=kv_dtype)
    flops = sum(o.instances * o.flops for o in operators)
    moved = sum(o.instances * o.bytes for o in operators)
    budget = budget_of(cost, shape) if cost is not None else ()
    return PhasePlan(
        phase=phase,
        what=what,
        flops=flops,
        bytes=moved,
        intensity=flops / moved,
        time_s=cost.step_time(shape).floor if cost is not None else None,
        bound=bound_of(budget) if budget else None,
        budget=budget,
    )


def phase_operators(
    phase: str, shape: StepShape, subject: Subject, cost: CostModel | None
) -> tuple[OperatorRow, ...]:
    """List the operators of that step, priced where a device is known."""
    if cost is not None:
        return operator_rows(phase, cost, shape)
    if subject.model is None:
        return ()
    operators = step_operators(
        subject.model, shape, dtype=subject.dtype or "", kv_dtype=subject.kv_dtype or ""
    )
    return unpriced_rows(phase, operators)
