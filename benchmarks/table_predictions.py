"""Predict what the public tables measured, uncalibrated and calibrated on a few of their rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from table_rows import Run

from stallscope.analyzers.cost.achievable import DEFAULT, Achievable
from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.expected import expected_model
from stallscope.analyzers.cost.expected_error import expected_error
from stallscope.analyzers.cost.host_fit import MeasuredStep, calibrated
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.plan.memory import BLOCK, memory_map, scheduler_config
from stallscope.analyzers.plan.options import PlanOptions, subject_of
from stallscope.analyzers.whatif.simulate import Load, Overhead, simulate
from stallscope.profiler.capture import Capture
from stallscope.profiler.devices import load_device

# vLLM of 2024 without chunked prefill: a step takes whole prompts, up to the model's 8,192 tokens.
_STEP_TOKENS = 8192


def plan_of(run: Run) -> PlanOptions:
    """Return the plan that a run stands for."""
    return PlanOptions(
        model=run.model,
        device=load_device(run.device),
        dtype=run.dtype,
        kv_dtype=run.kv_dtype,
        input_tokens=run.tokens,
        output_tokens=run.tokens,
        concurrency=run.batch,
    )


def error_bar(run: Run) -> float:
    """Return the relative error that an uncalibrated prediction of a run is given."""
    return expected_error(subject_of(plan_of(run)))


def seconds_of(run: Run, reach: Achievable = DEFAULT) -> float:
    """Simulate a run on the engine's scheduler, in the memory that its device has."""
    options = plan_of(run)
    subject = subject_of(options)
    memory = memory_map(options, subject)
    cost = build_cost_model(Capture(subject=subject))
    if not isinstance(cost, CostModel) or memory.usable_bytes is None:
        raise ValueError(f"{run.name} has no cost model")
    expected = expected_model(cost, reach)
    if expected is None:
        raise ValueError(f"{run.name} is on no device of the table")
    pool = memory.usable_bytes - memory.weights_bytes - memory.activation_bytes
    blocks = max(1, pool // (BLOCK * memory.kv_bytes_per_token))
    config = scheduler_config(options, num_blocks=blocks, step_tokens=_STEP_TOKENS)
    load = Load(((0.0, run.tokens, run.tokens),) * run.batch)
    return simulate(load, config, expected, Overhead(reach.step_s, reach.request_s)).duration_s


def calibrated_on(runs: Sequence[Run]) -> Achievable:
    """Fit what the host adds to a step on a few runs."""
    device = dataclasses.replace(DEFAULT, step_s=0.0, request_s=0.0)
    steps = [
        MeasuredStep(run.batch, run.tpot_s, seconds_of(run, device) / run.tokens) for run in runs
    ]
    return calibrated(DEFAULT, steps)


def error(predicted: float, measured: float) -> float:
    """Return the miss relative to what was measured; negative is too fast."""
    return predicted / measured - 1.0


def mape(errors: Sequence[float]) -> float:
    """Return the mean absolute miss."""
    return sum(abs(e) for e in errors) / len(errors)
