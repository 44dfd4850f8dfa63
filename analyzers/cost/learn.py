"""Learn from recorded runs what a device and an engine take of what the cost model estimates."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from stallscope.analyzers.cost.achievable import DEFAULT
from stallscope.analyzers.cost.calibration import NoCostModel, build_cost_model
from stallscope.analyzers.cost.expected import expected_model
from stallscope.analyzers.cost.host_fit import MeasuredStep, calibrated, host_error
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.cost.run_mark import run_mark
from stallscope.analyzers.cost.step_fit import Observation, fit_error, fit_factors, observations
from stallscope.analyzers.step.shape import computed_shape
from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import Calibration, DeviceSpec


def learn(device: DeviceSpec, captures: Sequence[Capture], *, at: str) -> Calibration:
    """Calibrate a device on the steps of recorded runs. ValueError says what they lack."""
    marks = [run_mark(capture) for capture in captures if capture.steps]
    if len(set(marks)) < len(marks):
        raise ValueError("two of the captures are the same run; give each run once")
    if device.kind == "datasheet":
        return _learn_host(device, captures, at)
    if not device.products or not device.launch_s:
        raise ValueError(f"no products of {device.name} were measured; probe it with --probe")
    seen: list[Observation] = []
    for run, capture in enumerate(captures):
        cost = _cost(device, capture)
        if not cost.machine.linear_times:
            raise ValueError(f"no products in {cost.dtype} were measured; probe with --dtype")
        found = observations(run, cost, capture.steps)
        if not found:
            raise ValueError("a capture holds no step of prefill or decode whose work is known")
        seen.extend(found)
    products, attention, rows, launch = fit_factors(seen)
    return replace(
        _of(captures, at, len(seen)),
        error=fit_error(seen),
        products=products,
        attention=attention,
        rows=rows,
        launch=launch,
    )


def _of(captures: Sequence[Capture], at: str, steps: int) -> Calibration:
    engines = dict.fromkeys(capture.subject.engine or "unknown" for capture in captures)
    runs = tuple(run_mark(capture) for capture in captures)
    recorded = sum(len(capture.steps) for capture in captures)
    return Calibration(
        *(at, ", ".join(engines), len(captures), steps),
        error=0.0,
        runs=runs,
        recorded=recorded,
    )


def _cost(device: DeviceSpec, capture: Capture) -> CostModel:
    """Price a run on the device as it is described now, not by the run's own probes."""
    subject = replace(capture.subject, device=replace(device, calibration=None))
    cost = build_cost_model(Capture(subject=subject))
    if isinstance(cost, NoCostModel):
        raise ValueError(f"a capture cannot be priced: {cost.reason}")
    return cost


def _learn_host(device: DeviceSpec, captures: Sequence[Capture], at: str) -> Calibration:
    """Fit what the engine's host adds to decode steps, as host_fit."""
    steps = [step for capture in captures for step in _decode_steps(device, capture)]
    fitted = calibrated(DEFAULT, steps)
    return replace(
        _of(captures, at, len(steps)),
        error=host_error(steps),
        sizes=len({step.requests for step in steps}),
        step_s=fitted.step_s,
        request_s=fitted.request_s,
    )


def _decode_steps(device: DeviceSpec, capture: Capture) -> list[MeasuredStep]:
    """Return the decode step of median length at each number of requests."""
    model = expected_model(_cost(device, capture))
    if model is None:
        raise ValueError(f"what kernels reach of {device.name} is not known")
    by_size = defaultdict(list)
    for step in capture.steps:
        shape = computed_shape(step, model.spec.sliding_window)
        if step.phase == "decode" and not step.warmup and shape is not None:
            seconds = (step.end_ns - step.start_ns) * 1e-9
            by_size[step.decode_requests].append((seconds, model.step_time(shape).floor))
    return [
        MeasuredStep(
            requests,
            statistics.median(seconds for seconds, _ in known),
            statistics.median(device_s for _, device_s in known),
        )
        for requests, known in sorted(by_size.items())
        if requests
    ]
