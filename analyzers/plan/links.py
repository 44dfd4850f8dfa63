"""A plan over several links side by side: what they carry in a decode step, and what that takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.likely import likely_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.plan.memory import memory_map
from stallscope.analyzers.plan.options import PlanOptions, subject_of
from stallscope.analyzers.plan.predictions import predictions
from stallscope.analyzers.plan.result import LinkRow, Prediction
from stallscope.analyzers.plan.steps import phase_shapes
from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import DeviceSpec


def compare_links(options: PlanOptions) -> tuple[LinkRow, ...]:
    """Price the plan over each of its links; () where there is one, or no price."""
    if len(options.links) < 2:
        return ()
    rows = [_row(replace(options, device=device), device) for device in options.links]
    return tuple(row for row in rows if row is not None)


def _row(options: PlanOptions, device: DeviceSpec) -> LinkRow | None:
    subject = subject_of(options)
    cost = build_cost_model(Capture(subject=subject))
    if not isinstance(cost, CostModel):
        return None
    model, _ = likely_model(cost)
    decode = next(shape for phase, _, shape in phase_shapes(options) if phase == "decode")
    step = model.step_time(decode)
    predicted = predictions(options, memory_map(options, subject), cost)
    return LinkRow(
        link=device.link,
        link_bytes_per_s=device.link_bytes_per_s,
        host_link_bytes_per_s=device.to_host_bytes_per_s,
        communication_s=step.communication,
        transfer_s=step.transfer,
        ttft_s=_value(predicted, "ttft_s"),
        tpot_s=_value(predicted, "tpot_s"),
        throughput_tokens_per_s=_value(predicted, "throughput_tokens_per_s"),
    )


def _value(predicted: Mapping[str, Prediction | None], name: str) -> float | None:
    """Return what to expect, or the best where nothing is expected beside it."""
    found = predicted[name]
    if found is None:
        return None
    return found.value if found.expected is None else found.expected
