"""A capture with everything that is worked out before it is judged."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.analyzers.benchmark.facts import benchmark_span, is_benchmark_only
from stallscope.analyzers.benchmark.latency import client_throughput
from stallscope.analyzers.benchmark.step import benchmark_costs
from stallscope.analyzers.checks import Checked, check
from stallscope.analyzers.cost.calibration import NoCostModel, build_cost_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.impossible import why_impossible
from stallscope.analyzers.load.device_demand import is_telemetry_only, sampled_span
from stallscope.analyzers.load.sampled_work import sampled_costs
from stallscope.analyzers.load.span import Span, run_span
from stallscope.analyzers.load.untold_step import untold_step
from stallscope.analyzers.ranks import engine_steps
from stallscope.analyzers.result import Throughput
from stallscope.analyzers.step.budget import StepCost, cost_steps, measured_steps
from stallscope.analyzers.step.copies import with_copies
from stallscope.analyzers.step.trace import with_trace
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture


@dataclass(frozen=True, slots=True)
class Run:
    """A capture, its checks, its priced steps, and why there is no budget where there is none."""

    capture: Capture
    checked: Checked
    cost: CostModel | None
    missing: NoCostModel | None
    costs: tuple[StepCost, ...]
    span: Span
    thresholds: Thresholds
    throughput: Throughput

    @property
    def why_no_budget(self) -> str:
        """A clause for the sentence, empty where there is a budget."""
        return f"{self.missing.reason} ({self.missing.how})" if self.missing else ""


_OF_TELEMETRY = NoCostModel(
    "GPU telemetry knows no steps",
    "give the server's log of the same time beside it",
)


def _has_mean_step(capture: Capture, cost: CostModel) -> bool:
    span = run_span(capture)
    return span is not None and bool(sampled_costs(capture, cost, span))


def prepare(capture: Capture, thresholds: Thresholds) -> Run:
    """Work out what every later step needs; without a cost model where it cannot be right."""
    run = _prepared(capture, thresholds, build_cost_model(capture))
    wrong = why_impossible(capture, run.costs, run.cost, run.span)
    return run if wrong is None else _prepared(capture, thresholds, wrong)


def _prepared(capture: Capture, thresholds: Thresholds, model: CostModel | NoCostModel) -> Run:
    cost = model if isinstance(model, CostModel) else None
    steps = engine_steps(measured_steps(capture))
    costs = with_copies(with_trace(cost_steps(steps, cost), capture), capture)
    missing = model if isinstance(model, NoCostModel) else None
    if is_benchmark_only(capture):
        found = benchmark_costs(capture, cost)
        costs, missing = (
            ((), missing or found) if isinstance(found, NoCostModel) else (found, missing)
        )
    if is_telemetry_only(capture):
        missing = _OF_TELEMETRY
    elif cost is not None and not costs and missing is None and not _has_mean_step(capture, cost):
        missing = (
            untold_step(capture, cost)
            if capture.engine_samples
            else NoCostModel("no step was recorded", "record steps, or trace a few with nsys")
        )
    elif cost is not None and any(c.floor is None for c in costs):
        reason = "steps do not say how much context they read"
        missing = NoCostModel(reason, "record context_tokens")
    span = run_span(capture) or benchmark_span(capture)
    return Run(
        capture=capture,
        checked=check(capture, cost),
        cost=cost,
        missing=missing,
        costs=costs,
        span=span or sampled_span(capture) or Span(0, 0),
        thresholds=thresholds,
        throughput=client_throughput(capture, span),
    )
